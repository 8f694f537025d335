/** The benchmark runs, small; how long it takes is nobody's business here. */
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
