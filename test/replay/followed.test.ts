/**
 * A journal whose decisions this version would not make: every call stands where the record has it. The other
 * version is this one under other policies, told of the same facts.
 */
import { HashMap } from 'effect'
import { describe, expect, it } from 'vitest'
import { advance, parsePolicy, type ScopeContext, type ScopeEvent } from '../../machines/index.ts'
import { endingOf } from '../../machines/scheduling/lifecycle.ts'
import { decodeScope, encodeScope } from '../../machines/snapshot/codec.ts'
import { ReplayDiverged, Replayed } from '../../src/host/recovery.ts'
import { type Draw, drawFrom } from '../../src/simulation/soak/draw.ts'
import { History, nearPolicy } from './histories.ts'

/** Endings are remembered as long in both. */
const kept = { settledRetention: 4_096, unclaimedExpiryMs: 5_000 } as const

const otherwise = (event: ScopeEvent, draw: Draw): ScopeEvent =>
  event.type === 'policy.changed'
    ? { ...event, policy: parsePolicy({ ...nearPolicy(draw), ...kept }) }
    : event

const idsOf = (context: ScopeContext) => ({
  waiting: [...HashMap.values(context.waiting)].sort((a, b) => a.seq - b.seq).map(({ call }) => call.id),
  inFlight: [...HashMap.values(context.inFlight)]
    .sort((a, b) => a.seq - b.seq)
    .map(({ call, stage }) => `${call.id} ${stage}`),
})

/** Whether a call with the id would be sent if it came again. */
const isOver = (context: ScopeContext, id: string): boolean => {
  const ending = endingOf(context, id)
  return ending !== undefined && ending !== 'withdrawn'
}

const followedBeside = (seed: number, events: number, lookEvery: number) => {
  const history = new History(seed, kept)
  const draw = drawFrom(seed, 'other version')
  const replayed = new Replayed('scope')
  const ids = new Set<string>()
  const first: ScopeEvent = { type: 'policy.changed', at: history.context.at, policy: history.context.policy }
  replayed.follow({ event: otherwise(first, draw), decisions: [] }, 1)
  for (let step = 0; step < events; step += 1) {
    const event = history.next()
    if (event.type === 'call.submitted') ids.add(event.call.id)
    replayed.follow({ event: otherwise(event, draw), decisions: history.tell(event) }, step + 2)
    if (step % lookEvery !== 0) continue
    expect(idsOf(replayed.context), `seed ${seed}, step ${step}`).toEqual(idsOf(history.context))
  }
  return { live: history.context, replayed, ids }
}

describe('a record that this version would not have made', () => {
  it.each(Array.from({ length: 40 }, (_, seed) => [seed, seed % 3 === 0 ? 1 : seed % 3 === 1 ? 13 : 1_000]))(
    'history %i, looked at every %i events, leaves each call where it was, and none is sent again',
    (seed, lookEvery) => {
      const { live, replayed, ids } = followedBeside(seed, 200, lookEvery)
      expect(idsOf(replayed.context)).toEqual(idsOf(live))
      expect(replayed.differsFrom).not.toBeNull()
      const text = JSON.stringify(encodeScope(replayed.context))
      expect(JSON.stringify(encodeScope(decodeScope(JSON.parse(text))))).toBe(text)
      const restored = decodeScope({ ...JSON.parse(text), policy: live.policy })
      // The host is gone, and the next one goes on.
      const recovery = { type: 'host.recovered', at: live.at } as const
      const [was, goesOn] = [advance(live, recovery), advance(restored, recovery)]
      expect(idsOf(goesOn)).toEqual(idsOf(was))
      for (const id of ids) expect([id, isOver(goesOn, id)]).toEqual([id, isOver(was, id)])
      expect([...HashMap.keys(goesOn.unknown)].sort()).toEqual([...HashMap.keys(was.unknown)].sort())
      // It decides on for as long as it is asked to.
      const after = new History(seed + 10_000, kept)
      after.context = goesOn
      for (let step = 0; step < 150; step += 1) {
        const event = after.next()
        after.tell({ ...event, at: Math.max(event.at, goesOn.at) })
      }
    },
  )

  it('that grants or ends a call which is not there cannot be followed', () => {
    const grant = { callId: 'nobody', verdict: 'admit', reason: 'open', at: 1, state: 'idle' } as const
    const replayed = new Replayed('scope')
    const record = { event: { type: 'clock.woke', at: 1 }, decisions: [grant] } as const
    expect(() => replayed.follow(record, 7)).toThrow(ReplayDiverged)
    expect(() => new Replayed('scope').follow(record, 7)).toThrow(
      /entry 7 of scope: .* says admit of call nobody, which by the same record is not there/,
    )
  })
})
