/** The random driver of the laws of order: policies at their edges, and every move in every state. */
import fc from 'fast-check'
import { expect } from 'vitest'
import { contractPolicy, type PolicyInput, parsePolicy } from '../../machines/index.ts'
import { OrderJudge } from './order-judge.ts'
import { anyMove, Drive, type Move } from './scope-drive.ts'

/** Policies at the edges of what may be written. */
export const edgePolicy: fc.Arbitrary<PolicyInput> = fc
  .record({
    capacity: fc.integer({ min: 1, max: 5 }),
    reserve: fc.constantFrom('auto' as const, 'none' as const, 'all but one' as const),
    squeezeMs: fc.constantFrom(0, 0, 30_000),
    inFlight: fc.constantFrom('settle' as const, 'cancel' as const, 'tolerate' as const),
    afterPatience: fc.constantFrom('proceed' as const, 'cancel' as const),
    patienceMs: fc.constantFrom(0, 5_000),
    graceMs: fc.constantFrom(0, 1_000),
    quietWindowMs: fc.constantFrom(0, 10_000),
    hold: fc.constantFrom('whileWaiting' as const, 'untilAccepted' as const, 'untilSettled' as const),
    quantumTokens: fc.constantFrom(1, 100, 64_000),
    drainIntervalMs: fc.constantFrom(0, 1, 1_000),
    maxDeferralMs: fc.constantFrom(100, 5_000),
    maxRankDeferralMs: fc.constantFrom(null, 100, 20_000),
    favor: fc.constantFrom('begunInPrincipal' as const, 'begun' as const, 'arrival' as const),
    primaryPendingTimeoutMs: fc.constantFrom(30_000, 1_800_000),
    lingerMs: fc.constantFrom(0, 5_000),
    maxAttempts: fc.constantFrom(1, 3),
    principalQuota: fc.constantFrom(null, null, 1, 2),
    quotas: fc.constantFrom({}, { a: 1 }, { a: 1, b: 2 }),
    qos: fc.constantFrom(null, null, null, {}),
    limits: fc.constantFrom(
      {},
      { inputTokensPerMinute: 200_000 },
      { requestsPerMinute: 5 },
      { requestsPerMinute: 5, inputTokensPerMinute: 250_000 },
    ),
    charges: fc.constantFrom({}, {}, { at: 'completion' as const }, { failures: true }),
  })
  .map(({ reserve, ...policy }) => ({
    ...policy,
    reserve: reserve === 'auto' ? reserve : reserve === 'none' ? 0 : policy.capacity - 1,
  }))

export const anyOrderStory = fc.record({
  policy: edgePolicy,
  moves: fc.array(
    fc.oneof(
      { weight: 12, arbitrary: anyMove },
      { weight: 1, arbitrary: edgePolicy.map((policy) => ({ do: 'policy' as const, policy })) },
      { weight: 1, arbitrary: fc.constant({ do: 'restart' as const }) },
    ),
    // By itself fast-check would make lists of ten at most.
    { maxLength: 70, size: 'max' },
  ),
})

type OrderMove = Move | { readonly do: 'policy'; readonly policy: PolicyInput } | { readonly do: 'restart' }

/** Drives one scope through its story under the judge's eyes; answers how many waits were judged. */
export const driveInOrder = (policy: PolicyInput, moves: ReadonlyArray<OrderMove>): number => {
  const drive = new Drive(policy)
  const judge = new OrderJudge(parsePolicy(policy, contractPolicy), drive.at)
  drive.watch((event, decisions, after) => judge.observe(event, decisions, after))
  for (const move of moves) {
    if (move.do === 'policy')
      drive.tell({ type: 'policy.changed', at: drive.at, policy: parsePolicy(move.policy, contractPolicy) })
    else if (move.do === 'restart') drive.restart()
    else drive.move(move)
  }
  drive.drain()
  drive.witness.finish()
  expect(drive.context.waiting.toString()).not.toContain('call')
  return judge.judged
}
