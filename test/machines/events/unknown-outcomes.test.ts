/** A call whose outcome died with its host is not sent again because many others ended since. */
import { HashMap } from 'effect'
import { describe, expect, it } from 'vitest'
import {
  advance,
  contextFrom,
  contractPolicy,
  type PolicyInput,
  parsePolicy,
  type ScopeContext,
  type ScopeEvent,
} from '../../../machines/index.ts'
import { decodeScope, encodeScope } from '../../../machines/snapshot/codec.ts'

const day = 86_400_000
const startMs = 1_000_000

const call = (id: string) => ({
  id,
  turnId: null,
  lane: 'auxiliary' as const,
  priorityClass: 'background_ingestion' as const,
  principal: 'a',
  inputTokens: 0,
  outputTokens: 0,
  deadlineAt: null,
  dependsOn: [],
  parentId: null,
})

/** A scope in which 40 calls ran when the host died. */
const died = (policy: PolicyInput = {}): ScopeContext => {
  const events: ScopeEvent[] = [
    {
      type: 'policy.changed',
      at: startMs,
      policy: parsePolicy({ capacity: 64, settledRetention: 16, ...policy }, contractPolicy),
    },
  ]
  for (let n = 0; n < 40; n += 1)
    events.push({ type: 'call.submitted', at: startMs, call: call(`lost-${n}`), dispatchAtOnce: true })
  events.push({ type: 'host.recovered', at: startMs + 1_000 })
  return events.reduce((context, event) => advance(context, event), contextFrom('scope'))
}

const othersEnd = (context: ScopeContext, count: number, atMs: number): ScopeContext => {
  let next = context
  for (let n = 0; n < count; n += 1) {
    next = advance(next, {
      type: 'call.submitted',
      at: atMs,
      call: call(`other-${atMs}-${n}`),
      dispatchAtOnce: true,
    })
    next = advance(next, {
      type: 'call.settled',
      at: atMs,
      callId: `other-${atMs}-${n}`,
      outcome: 'completed',
    })
  }
  return next
}

const answer = (context: ScopeContext, id: string, atMs: number) => {
  const next = advance(context, { type: 'call.submitted', at: atMs, call: call(id) })
  return [next, next.decisions[0]?.reason] as const
}

describe('calls of unknown outcome', () => {
  it.each([
    ['live', (context: ScopeContext) => context],
    ['restored', (context: ScopeContext) => decodeScope(JSON.parse(JSON.stringify(encodeScope(context))))],
  ])('are refused after any number of other calls, for seven days: %s', (_, through) => {
    let context = through(othersEnd(died(), 400, startMs + 2_000))
    for (let n = 0; n < 39; n += 1) {
      const [next, reason] = answer(context, `lost-${n}`, startMs + 7 * day)
      expect(reason).toBe('outcome-unknown')
      context = next
    }
    expect(HashMap.size(context.unknown)).toBe(1)
    expect(answer(context, 'lost-39', startMs + 7 * day + 1_001)[1]).toBe('open')
  })

  it('are remembered like others once their owner has heard', () => {
    const [told] = answer(died(), 'lost-0', startMs + 2_000)
    expect(answer(told, 'lost-0', startMs + 3_000)[1]).toBe('outcome-unknown')
    const later = othersEnd(told, 100, startMs + 4_000)
    expect(answer(later, 'lost-0', startMs + 5_000)[1]).toBe('open')
    expect(answer(later, 'lost-1', startMs + 5_000)[1]).toBe('outcome-unknown')
  })

  it('are kept as long as the policy says', () => {
    const context = died({ unknownRetentionMs: 60_000 })
    expect(answer(context, 'lost-0', startMs + 60_999)[1]).toBe('outcome-unknown')
    expect(answer(context, 'lost-0', startMs + 61_001)[1]).toBe('open')
  })
})
