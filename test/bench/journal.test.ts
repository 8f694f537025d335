/** The benchmark runs whole and tiny: what it prints can be read by a program. */
import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { expect, it } from 'vitest'

const program = fileURLToPath(new URL('./journal.ts', import.meta.url))

it('measures every case, small, one JSON line each', { timeout: 120_000 }, async () => {
  const { stdout } = await promisify(execFile)(process.execPath, [
    '--disable-warning=ExperimentalWarning',
    program,
    '--small',
    '--json',
  ])
  const lines = stdout
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line))
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
