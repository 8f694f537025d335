/** A disk that is full under the journal: said once and loudly, shown to probes, and over after a restart. */
import { execFileSync } from 'node:child_process'
import { rmSync, statfsSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it, onTestFinished, vi } from 'vitest'
import { folder, Program } from './program.ts'

/** A file system of its own, of two megabytes; null where this user may not mount. */
const smallDisk = (): string | null => {
  const at = folder()
  try {
    execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=2m', 'tmpfs', at], { stdio: 'ignore' })
  } catch {
    return null
  }
  onTestFinished(() => void execFileSync('umount', ['-l', at]))
  return at
}

const mayMount = ((): boolean => {
  try {
    return process.platform === 'linux' && process.getuid?.() === 0
  } catch {
    return false
  }
})()

it.skipIf(!mayMount)(
  'the gateway says so, answers 503, ends with code 75, and takes up its calls once there is room',
  async ({ skip }) => {
    const at = smallDisk()
    if (at === null) return skip('this user may not mount a tmpfs')
    const args = ['serve', '--port', '0', '--journal', join(at, 'lanes.db')]
    const program = new Program(args, at)
    const [, url] = await program.says(/listens on (http:\S+)/)
    const ask = () =>
      fetch(`${url}/emulator/anthropic/v1/messages`, {
        method: 'POST',
        headers: { 'x-api-key': 'any', 'content-type': 'application/json' },
        body: JSON.stringify({ model: 'm', max_tokens: 1, messages: [{ role: 'user', content: 'x' }] }),
      })
    expect((await ask()).status).toBe(200)
    const filler = join(at, 'filler')
    const { bavail, bsize } = statfsSync(at)
    writeFileSync(filler, Buffer.alloc(Number(bavail) * bsize))
    let health: Response | null = null
    await vi.waitFor(
      async () => {
        await (await ask()).text()
        health = await fetch(`${url}/healthz`)
        expect(health.status).toBe(503)
      },
      { timeout: 20_000, interval: 5 },
    )
    expect(await (health as unknown as Response).text()).toMatch(/journal-failed.*make room/)
    const { code, err } = await program.finished
    expect(code).toBe(75)
    expect(err.match(/THE JOURNAL HAS FAILED/g)).toHaveLength(1)
    expect(err.trim().split('\n')).toEqual([expect.stringContaining('THE JOURNAL HAS FAILED')])
    rmSync(filler)
    const again = new Program(args, at)
    const [, next] = await again.says(/listens on (http:\S+)/)
    expect((await fetch(`${next}/healthz`)).status).toBe(200)
    again.child.kill('SIGTERM')
    expect((await again.finished).code).toBe(0)
  },
)
