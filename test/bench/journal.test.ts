/** The whole benchmark runs in a tiny form: a program can read its output. */
import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { expect, it } from 'vitest'
import { redisProgram } from './redis-server.ts'

const program = fileURLToPath(new URL('./journal.ts', import.meta.url))

const run = async (...args: string[]): Promise<ReadonlyArray<string>> => {
  const { stdout } = await promisify(execFile)(
    process.execPath,
    ['--disable-warning=ExperimentalWarning', program, '--small', ...args],
    // Without a PATH there is no redis-server, wherever the tests run.
    { env: { ...process.env, PATH: args.includes('besideBullMq') ? process.env['PATH'] : '' } },
  )
  return stdout.trim().split('\n')
}

it('measures every case, small, one JSON line each', { timeout: 120_000 }, async () => {
  const lines = (await run('--json')).map((line) => JSON.parse(line))
  expect(lines.map((line) => line.case)).toEqual([
    'sequential durable admit, p50',
    'saturated, 8 scopes x 100 waiting, per call',
    'an event beside 500 waiting',
    'checkpoint of 500 waiting: longest stall of the event loop',
    'recovery of 500 waiting calls',
    'recovery of 3000 events without a checkpoint',
    'explain the newest call of 3000 events',
    'explain a call that none of 3000 events names',
  ])
  for (const { bench, us, baseline, ratio } of lines) {
    expect(bench).toBe('journal')
    expect(us).toBeGreaterThan(0)
    if (baseline !== null) expect(ratio).toBeCloseTo(us / baseline)
  }
})

it('says what is missing where it cannot compare with BullMQ', { timeout: 120_000 }, async () => {
  expect((await run('--only', 'longHistory')).at(-1)).toBe('BullMQ was not measured: redis-server is missing')
})

it.runIf(redisProgram() !== null)(
  'compares with BullMQ where there is a Redis',
  { timeout: 120_000 },
  async () => {
    const lines = await run('--json', '--only', 'besideBullMq')
    expect(lines.map((line) => JSON.parse(line).case)).toEqual([
      'saturated, 8 scopes x 100 waiting, per call, beside BullMQ',
      'sequential durable admit, p50, beside BullMQ',
    ])
  },
)
