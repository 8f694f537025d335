/**
 * One projection: all surfaces show the same status at one moment, and its times follow a clock, not the
 * events.
 */
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { Api } from '../../inspector/api.ts'
import { sampleOf } from '../../inspector/page/src/model/series.ts'
import { Track } from '../../inspector/page/src/model/track.ts'
import { entryFrame } from '../../inspector/projection.ts'
import type { ScopesAnswer } from '../../inspector/protocol.ts'
import { hostSource } from '../../inspector/source.ts'
import { adaptivePolicy, advance, contextFrom, type ScopeContext } from '../../machines/index.ts'
import { explainState } from '../../src/host/explain.ts'
import { scopeSentence } from '../../src/host/explain-words.ts'
import { kernelOf } from '../../src/host/internal.ts'
import { scopeFacts, scopeStatus } from '../../src/host/scope-facts.ts'
import { type ScopeStatus, statusAt } from '../../src/host/status.ts'
import { runs } from '../properties/runs.ts'
import { anyMove, anyPolicy, Drive } from '../properties/scope-drive.ts'
import { Bench } from './bench.ts'

const asJson = <A>(value: A): A => JSON.parse(JSON.stringify(value))

/** The page's view of a scope's entries. */
const pageOf = (drive: Drive): ScopeContext => {
  const track = new Track({
    base: { scope: 'test', position: 0, at: 0, snapshot: null },
    earlier: 0,
    later: drive.events.length,
  })
  const base = contextFrom('test', null)
  let before = base
  const entries = drive.events.map((event, index) => {
    before = advance(before, event)
    return entryFrame({ scope: 'test', position: index + 1, event, decisions: before.decisions })!
  })
  track.add(asJson(entries))
  track.replay(() => true)
  return track.contextAt(entries.length - 1)
}

/** The tokens of the last minute, by looking at every charge. */
const tokensSince = ({ belief }: ScopeContext, fromMs: number): number =>
  belief.charges.filter(({ atMs }) => atMs > fromMs).reduce((sum, { tokens }) => sum + tokens, 0)

describe('what is shown of a scope', () => {
  it('is the same in status, rows, page and explain, at any moment after any history', () => {
    fc.assert(
      fc.property(
        fc.oneof(anyPolicy, fc.constant({ ...adaptivePolicy, capacityFloor: 1 })),
        fc.array(anyMove, { maxLength: 40 }),
        fc.nat(200_000),
        (policy, moves, laterMs) => {
          const drive = new Drive(policy)
          for (const move of moves) drive.move(move)
          const { context } = drive
          const nowMs = context.at + laterMs
          const status = scopeStatus(context, nowMs)
          // The row of the feed, and of `/api/scopes`: the facts as text, used at a later moment.
          expect(statusAt(asJson(scopeFacts(context)), nowMs)).toEqual(status)
          const page = pageOf(drive)
          expect(scopeStatus(page, nowMs)).toEqual(status)
          expect(sampleOf(scopeStatus(page, nowMs)).recentTokens).toBe(status.recentInputTokens)
          for (const [id] of context.waiting)
            expect(explainState(context, id, nowMs)?.lines.join('\n')).toContain(scopeSentence(status))
          // And it is true: by the context itself.
          expect(status.recentInputTokens).toBe(tokensSince(context, nowMs - 60_000))
          const statedMs = Math.max(0, ...context.belief.statedWaits.map(({ untilMs }) => untilMs))
          const wait =
            context.wait ??
            (statedMs > context.at ? { untilMs: statedMs, kind: 'stated-wait', probeId: null } : null)
          expect(status.wait).toEqual(wait !== null && wait.untilMs > nowMs ? wait : null)
        },
      ),
      { numRuns: runs(60) },
    )
  })
})

/** A host's scope as `status()`, the scope itself and the inspector's API show it. */
const shown = async (bench: Bench): Promise<ScopeStatus> => {
  const source = hostSource(bench.host)
  const { body } = await new Api(source, { allowActions: false, token: null }).get(
    'scopes',
    new URLSearchParams(),
  )
  const { now, scopes } = asJson(body as ScopesAnswer)
  const [status] = bench.host.status()
  expect(bench.scope.status).toEqual(status)
  expect(statusAt(scopes[0]!.facts, now)).toEqual(status)
  return status!
}

describe('while nothing happens', () => {
  it('waits and runs grow older, alarms come, and the tokens of the last minute leave it', async () => {
    const bench = await Bench.open({ capacity: 2, reserve: 1, inFlight: 'settle', maxDeferralMs: 100_000 })
    await bench.auxiliary('hangs', { inputTokens: 5_000 })
    await bench.auxiliary('held', { inputTokens: 10 })
    const { clock } = bench
    const { context } = kernelOf(bench.host).runners.get(bench.scope.name)!
    expect(await shown(bench)).toMatchObject({
      recentInputTokens: 5_000,
      auxiliary: { longestWaitMs: 0, longestActiveMs: 0 },
      alarms: [],
    })
    clock.jump(clock.now() + 75_000)
    expect(await shown(bench)).toMatchObject({
      at: context.at,
      nowMs: context.at + 75_000,
      recentInputTokens: 0,
      auxiliary: { longestWaitMs: 75_000, longestActiveMs: 75_000 },
      alarms: [],
    })
    clock.jump(clock.now() + 5_000)
    expect((await shown(bench)).alarms).toEqual([{ kind: 'auxiliary-starves', amount: 80_000 }])
    expect((await bench.host.explain('held'))?.lines[1]).toContain('1 auxiliary waits (longest 80 s)')
    expect((await bench.host.explain('held'))?.lines[0]).toContain('still waits after 80 s')
    await bench.host.close()
  })

  it('a primary behind a call that hangs is an alarm after half a minute', async () => {
    const bench = await Bench.open({ inFlight: 'settle', patienceMs: 1_000_000 })
    await bench.auxiliary('hangs')
    await bench.primary('turn')
    bench.clock.jump(bench.clock.now() + 29_999)
    expect((await shown(bench)).alarms).toEqual([])
    bench.clock.jump(bench.clock.now() + 1)
    expect((await shown(bench)).alarms).toEqual([{ kind: 'primary-waits', amount: 30_000 }])
    await bench.host.close()
  })

  it("a provider's wait ends by itself, and so does its alarm", async () => {
    const bench = await Bench.open()
    await bench.auxiliary('refused')
    const evidence = {
      kind: 'overloaded',
      scope: 'model',
      retryAfterMs: 10_000,
      retryable: true,
      facts: {},
    } as const
    kernelOf(bench.host).runners.get(bench.scope.name)?.tell({ type: 'provider.evidence', evidence })
    const until = bench.clock.now() + 10_000
    expect(await shown(bench)).toMatchObject({
      wait: { untilMs: until },
      alarms: [{ kind: 'provider-wait', amount: 10_000 }],
    })
    bench.clock.jump(until)
    expect(await shown(bench)).toMatchObject({ wait: null, alarms: [] })
    await bench.host.close()
  })
})

it('the places of a learned capacity are those that may be taken, not those of the policy', async () => {
  const bench = await Bench.open({ ...adaptivePolicy, capacity: 32, capacityFloor: 2 })
  for (let n = 0; n < 7; n += 1) await bench.auxiliary(`a${n}`, { inputTokens: 1 })
  const running = bench.running.length
  await bench.fail(
    'a0',
    Object.assign(new Error('too many'), {
      status: 429,
      error: {
        error: {
          type: 'rate_limit_error',
          message: 'Number of concurrent connections has exceeded your rate limit',
        },
      },
    }),
  )
  const status = await shown(bench)
  expect(running).toBe(7)
  expect(status.capacity).toBeLessThan(32)
  await bench.host.close()
})
