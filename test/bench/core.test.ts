/** The benchmark runs in a small form; this test does not judge its times. */
import { spawnSync } from 'node:child_process'
import { expect, it } from 'vitest'
import { contenders } from './contenders.ts'
import { measure } from './core-measure.ts'
import { bytesPerWaitingCall } from './heap-use.ts'

it('every scheduler takes its jobs at every backlog', async () => {
  const measured = await measure({ backlogs: [3, 50], rounds: 1, scale: 0.001 })
  expect(measured).toHaveLength(2 * contenders.length)
  for (const { us, ratio } of measured) {
    expect(us).toBeGreaterThanOrEqual(0)
    expect(ratio).not.toBeLessThan(0)
  }
})

it('a waiting call takes a bounded part of the heap', () => {
  expect(bytesPerWaitingCall(2_000)).toBeGreaterThan(0)
})

it('a process that has measured a full backlog of every other scheduler ends', () => {
  const program = `
    const { contenders } = await import('${new URL('./contenders.ts', import.meta.url)}')
    for (const { name, open, largestBacklog } of contenders.filter(({ name }) => !name.startsWith('rightofway'))) {
      const session = await open(Math.min(20_000, largestBacklog))
      await session.run(5)
      await session.close()
      console.log(name)
    }`
  const { status, stdout } = spawnSync(
    process.execPath,
    ['--disable-warning=ExperimentalWarning', '--input-type=module', '--eval', program],
    { timeout: 60_000, encoding: 'utf8' },
  )
  expect(stdout.trim().split('\n')).toHaveLength(contenders.length - 2)
  expect(status).toBe(0)
}, 90_000)
