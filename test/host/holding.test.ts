import { describe, expect, it } from 'vitest'
import type { Evidence } from '../../machines/index.ts'
import { longestBeliefMs } from '../../src/host/holding.ts'
import { Bench } from './bench.ts'

const minuteMs = 60_000
const hourMs = 60 * minuteMs
const dayMs = 24 * hourMs

/** A refusal as an SDK throws it. */
const refusal = (
  status: number,
  body: unknown,
  headers: Readonly<Record<string, string>> = {},
): Error & { status: number } => Object.assign(new Error(String(status)), { status, headers, error: body })

const emptyAccount = () =>
  refusal(429, { error: { message: 'no more', type: 'insufficient_quota', code: 'insufficient_quota' } })
const planUsedUp = () => refusal(429, { error: { message: 'You have reached your weekly usage limit.' } })
const planUntil = (seconds: number) =>
  refusal(429, { error: { type: 'usage_limit_reached', message: 'used up', resets_in_seconds: seconds } })
const bucketUsedUp = () =>
  refusal(
    429,
    { error: { type: 'usage_limit_reached', message: 'used up', resets_in_seconds: 13_000 } },
    { 'x-codex-limit-name': 'test-7-quick' },
  )

/** Calls that wait for days. */
const patient = { primaryPendingTimeoutMs: 20 * dayMs, auxiliaryPendingTimeoutMs: 20 * dayMs }

const sibling = (bench: Bench, credential: string, model: string) =>
  bench.host.scope({ provider: 'anthropic', credential, model }, patient)

describe('an allowance that is used up without a stated end', () => {
  it('is asked for once in quotaHoldMs, and not hammered', async () => {
    const bench = await Bench.open({ quotaHoldMs: 5 * minuteMs })
    for (const id of ['a', 'b', 'c']) await bench.auxiliary(id)
    for (const id of ['a', 'b', 'c']) await bench.fail(id, planUsedUp())
    expect(bench.running).toEqual([])
    const before = bench.log.length
    for (let minute = 0; minute < 30; minute += 1) {
      await bench.pass(minuteMs)
      for (const id of bench.running) await bench.fail(id, planUsedUp())
    }
    const probes = bench.log.length - before
    expect(probes).toBeGreaterThanOrEqual(4)
    expect(probes).toBeLessThanOrEqual(6)
    await bench.host.close()
  })

  it('opens again for everybody once its probe is accepted', async () => {
    const bench = await Bench.open({ quotaHoldMs: 5 * minuteMs })
    await bench.auxiliary('a')
    await bench.auxiliary('b')
    await bench.fail('a', planUsedUp())
    await bench.fail('b', planUsedUp())
    await bench.pass(5 * minuteMs)
    expect(bench.running).toHaveLength(1)
    await bench.finish(bench.running[0]!)
    await bench.pass(10_000)
    expect(bench.running).toHaveLength(1)
    await bench.host.close()
  })
})

describe('evidence of a whole credential', () => {
  it.each([
    ['an empty account, without a stated wait', emptyAccount, 5 * minuteMs],
    ['a plan that is used up, without a stated wait', planUsedUp, 5 * minuteMs],
    ['a plan with its reset', () => planUntil(7_200), 2 * hourMs],
  ])('holds the scopes that are known: %s', async (_says, error, heldMs) => {
    const bench = await Bench.open({ quotaHoldMs: 5 * minuteMs })
    const known = sibling(bench, 'k1', 'other')
    const stranger = sibling(bench, 'k2', 'm')
    await bench.primary('p')
    const atMs = bench.clock.now()
    await bench.fail('p', error())
    expect(known.status.wait).toMatchObject({ kind: 'quota-exhausted', untilMs: atMs + heldMs })
    expect(stranger.status.wait).toBeNull()
    await bench.host.close()
  })

  it.each([
    ['an empty account', emptyAccount, 5 * minuteMs],
    ['a plan with its reset', () => planUntil(7_200), 2 * hourMs],
  ])(
    'holds a scope that is first met during the hold, and no longer than the others: %s',
    async (_says, error, heldMs) => {
      const bench = await Bench.open({ quotaHoldMs: 5 * minuteMs })
      await bench.primary('p')
      const untilMs = bench.clock.now() + heldMs
      await bench.fail('p', error())
      await bench.pass(minuteMs)
      const late = sibling(bench, 'k1', 'late')
      await bench.start('l', { lane: 'primary', inputTokens: 1 }, late)
      expect(bench.running).not.toContain('l')
      expect(late.status.wait).toMatchObject({ untilMs })
      // One that inherited passes the hold on.
      const later = sibling(bench, 'k1', 'later')
      expect(later.status.wait).toMatchObject({ untilMs })
      expect(sibling(bench, 'k2', 'late').status.wait).toBeNull()
      await bench.pass(heldMs - minuteMs)
      expect(bench.running).toContain('l')
      expect(sibling(bench, 'k1', 'after').status.wait).toBeNull()
      await bench.host.close()
    },
  )

  it('does not come from one bucket of models, which the answer names', async () => {
    const bench = await Bench.open()
    const known = sibling(bench, 'k1', 'other')
    await bench.primary('p')
    await bench.fail('p', bucketUsedUp())
    expect(bench.scope.status.wait).toMatchObject({ kind: 'quota-exhausted' })
    expect(known.status.wait).toBeNull()
    expect(sibling(bench, 'k1', 'late').status.wait).toBeNull()
    await bench.host.close()
  })

  it('holds nothing where one prompt was too large for the credit that is left', async () => {
    const bench = await Bench.open()
    const known = sibling(bench, 'k1', 'other')
    await bench.auxiliary('a')
    const message = 'Prompt tokens limit exceeded: 51200 > 30000. Upgrade to a paid account'
    await bench.fail('a', refusal(402, { error: { message, code: 402 } }))
    expect(bench.scope.status.wait).toBeNull()
    expect(known.status.wait).toBeNull()
    await bench.primary('small', { inputTokens: 100 })
    expect(bench.running).toEqual(['small'])
    await bench.host.close()
  })
})

describe('a stated wait that is too long to be believed', () => {
  it.each([
    ['decades', 25 * 365 * 24 * 3_600],
    ['three weeks', 21 * 24 * 3_600],
  ])('is shown as stated, and one call finds out after a day: %s', async (_says, seconds) => {
    const bench = await Bench.open(patient)
    await bench.primary('p')
    await bench.auxiliary('a')
    const atMs = bench.clock.now()
    await bench.fail('p', planUntil(seconds))
    const statedUntilMs = atMs + seconds * 1_000
    expect(bench.scope.status.wait).toMatchObject({ untilMs: atMs + longestBeliefMs, statedUntilMs })
    const lines = (await bench.host.explain('a'))!.lines.join('\n')
    expect(lines).toContain(`asked to wait until ${new Date(statedUntilMs).toISOString()}`)
    const before = bench.log.length
    await bench.pass(longestBeliefMs - 1_000)
    expect(bench.log).toHaveLength(before)
    await bench.pass(1_000)
    expect(bench.running).toHaveLength(1)
    await bench.fail(bench.running[0]!, planUntil(seconds - dayMs / 1_000))
    const after = bench.log.length
    await bench.pass(dayMs - 1_000)
    expect(bench.log).toHaveLength(after)
    await bench.host.close()
  })

  it('counts for every kind of refusal, and lets everybody go once the probe is accepted', async () => {
    const bench = await Bench.open(patient)
    await bench.primary('p', { inputTokens: 10 })
    await bench.primary('q', { inputTokens: 10 })
    await bench.primary('r', { inputTokens: 10 })
    const limited = { error: { message: 'Sorry, your request was rate-limited.', code: 'rate_limited' } }
    for (const id of bench.running) await bench.fail(id, refusal(429, limited, { 'retry-after': '4000000' }))
    await bench.pass(longestBeliefMs)
    expect(bench.running).toHaveLength(1)
    await bench.finish(bench.running[0]!)
    await bench.pass(minuteMs)
    expect(bench.scope.status.wait).toBeNull()
    await bench.host.close()
  })

  it('never refuses an answer for the size of its number', async () => {
    const bench = await Bench.open()
    await bench.primary('p')
    await bench.fail('p', refusal(429, { error: { message: 'Please wait 9000000000000 seconds.' } }))
    expect(bench.scope.status.wait).toMatchObject({ untilMs: bench.clock.now() + longestBeliefMs })
    expect((await bench.host.explain('p'))!.lines.join('\n')).toContain('asked to wait until')
    await bench.host.close()
  })

  it('is believed whole up to a day', async () => {
    const bench = await Bench.open()
    await bench.primary('p')
    const atMs = bench.clock.now()
    await bench.fail('p', planUntil(24 * 3_600))
    expect(bench.scope.status.wait).toEqual({
      untilMs: atMs + dayMs,
      kind: 'quota-exhausted',
      probeId: null,
      reach: 'credential',
    } satisfies Record<string, unknown> & { reach: Evidence['scope'] })
    await bench.host.close()
  })
})
