import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { afterEach, describe, expect, it, vi } from 'vitest'
import { Outbox } from '../../src/host/outbox.ts'
import { Permit } from '../../src/host/permit.ts'
import { ScopeRunner } from '../../src/host/scope-runner.ts'
import { coverageText, sometimes, summed, unmet } from '../../src/simulation/soak/coverage.ts'
import { secret } from '../../src/simulation/soak/ledger.ts'
import { planOf } from '../../src/simulation/soak/plan.ts'
import { replayCommand, soakSeed } from '../../src/simulation/soak/seed.ts'

const seeds = Number(process.env['RIGHTOFWAY_SOAK_SEEDS'] ?? 200)

/** The first seed that breaks an invariant, with its message. */
const firstBroken = async (count: number, from = 1): Promise<string | null> => {
  for (let seed = from; seed < from + count; seed += 1) {
    try {
      await soakSeed(seed)
    } catch (error) {
      return `${error instanceof Error ? error.message : error} (replay it: ${replayCommand(seed)})`
    }
  }
  return null
}

describe('the host on a machine that fails', () => {
  it(`keeps I1 to I10 at every step of ${seeds} seeds`, { timeout: 200_000 }, async () => {
    expect(await firstBroken(seeds)).toBeNull()
  })

  it('counts what it meets, and names what a run never met', async () => {
    const { coverage, entries } = await soakSeed(1)
    const events = [...coverage].filter(([name]) => name.startsWith('event '))
    expect(events.reduce((sum, [, count]) => sum + count, 0)).toBe(entries)
    expect(unmet(new Map())).toEqual(sometimes)
    expect(unmet(summed([coverage, new Map(sometimes.map((name) => [name, 1]))]))).toEqual([])
    expect(coverageText(new Map([['state idle', 3]]))).toMatch(
      /^ +3 {2}state idle\nnever met: state primaryPending, /,
    )
  })

  it('does the same again for the same seed', async () => {
    const faulty = [1, 2, 3, 4, 5].filter((seed) => planOf(seed).faults.length > 0)
    for (const seed of faulty) {
      const [first, second] = [await soakSeed(seed), await soakSeed(seed)]
      expect(second).toEqual(first)
    }
    expect((await soakSeed(1)).hash).not.toBe((await soakSeed(2)).hash)
  })

  it('meets every kind of fault within its seeds', () => {
    const plans = Array.from({ length: seeds }, (_, index) => planOf(index + 1))
    const kinds = new Set(plans.flatMap(({ faults }) => faults.map(({ kind }) => kind)))
    expect([...kinds].sort()).toEqual(['close', 'eio', 'jump', 'kill', 'slow-sync'])
    expect(plans.some(({ isolated }) => isolated)).toBe(true)
  })
})

describe('a host that is wrong', () => {
  afterEach(() => void vi.restoreAllMocks())

  it('is caught when it acts before its decision is durable (I8)', async () => {
    vi.spyOn(Outbox.prototype, 'after').mockImplementation((_, carryOut) => carryOut())
    expect(await firstBroken(20)).toMatch(
      /^I8: .* was sent 1 times, recorded 0 \(replay it: npm run simulate:soak -- --seed \d+\)$/,
    )
  })

  it('is caught when it forgets to say that it was restarted', async () => {
    const tell = ScopeRunner.prototype.tell
    vi.spyOn(ScopeRunner.prototype, 'tell').mockImplementation(function (this: ScopeRunner, fact) {
      return fact.type === 'host.recovered' ? this.position : tell.call(this, fact)
    })
    expect(await firstBroken(50)).toMatch(/^I\d/)
  })

  it('is caught when it loses a settlement', async () => {
    const settle = Permit.prototype.settle
    let settled = 0
    vi.spyOn(Permit.prototype, 'settle').mockImplementation(function (this: Permit, settlement) {
      settled += 1
      return settled % 50 === 0 ? 'ended' : settle.call(this, settlement)
    })
    expect(await firstBroken(50)).not.toBeNull()
  })

  it('is caught when it writes down what a call said (I10)', async () => {
    // Past the door, which lets nothing through but numbers.
    vi.spyOn(ScopeRunner.prototype, 'settle').mockImplementation(function (
      this: ScopeRunner,
      { callId },
      settlement,
    ) {
      const usage = { inputTokens: 1, outputTokens: 1, said: secret }
      this.tell({ type: 'call.settled', callId, ...settlement, usage })
      return 'ended'
    })
    expect(await firstBroken(5)).toMatch(/^I10: a secret is in a record/)
  })
})

describe('simulate:soak', () => {
  const program = fileURLToPath(new URL('../../src/simulation/soak/main.ts', import.meta.url))
  const soak = (...args: string[]) =>
    promisify(execFile)(process.execPath, ['--disable-warning=ExperimentalWarning', program, ...args])

  it('replays a seed in a process of its own, to the same hash', async () => {
    const { stdout } = await soak('--seed', '3')
    expect(stdout).toBe(`seed 3: hash ${(await soakSeed(3)).hash}\n`)
  })

  it('counts what it went through, and refuses a count that cannot be', async () => {
    expect((await soak('--seeds', '2', '--from', '7')).stdout).toMatch(
      /\n2 seeds hold \(7 to 8\): \d+ entries, \d+ dispatches, \d+ restarts in [\d.]+ s\n$/,
    )
    await expect(soak('--seeds', 'many')).rejects.toMatchObject({
      code: 2,
      stderr: expect.stringContaining('--seeds must be a whole number of at least 1, got many'),
    })
  })
})
