/**
 * The versioned codec of a scope's snapshot: plain JSON in a fixed order, so that equal scopes
 * give equal bytes. Queues, heaps and counts are left out, for they follow from the calls.
 */
import { HashMap, Schema } from 'effect'
import { endingsOf, rowsOf } from '../collections/ended-log.ts'
import { fromArray, toArray } from '../collections/queue.ts'
import { written } from '../collections/ring.ts'
import { meterNames } from '../limits/budget.ts'
import type { Ramp } from '../limits/ramp.ts'
import { encodeQos, restoreQos } from '../limits/shed-limits.ts'
import { priorityClasses } from '../model/call.ts'
import { evidenceKinds } from '../model/evidence.ts'
import { decodeOrThrow, InvalidInput } from '../model/invalid.ts'
import { type Policy, restorePolicy } from '../model/policy.ts'
import { reorderPrimaries } from '../scheduling/primary-order.ts'
import { emptyContext, noCounters, type Principal, type ScopeContext } from '../state/context.ts'
import { draftOf } from '../state/draft.ts'
import { type EncodedPrincipal, type EncodedScope, snapshotVersion } from './encoded.ts'
import { decodeRamp } from './ramp-schema.ts'
import { restoreExpected, restoreFlights, restorePrincipals, restoreWaiting } from './restore.ts'
import { checkInFlight, checkPairs, checkWaiting } from './rows.ts'

const byKey = <T>(map: HashMap.HashMap<string, T>): Array<readonly [string, T]> =>
  HashMap.toEntries(map).sort(([one], [other]) => (one < other ? -1 : one > other ? 1 : 0))

const bySeq = <T extends { readonly seq: number }>(values: Iterable<T>): T[] =>
  [...values].sort((one, other) => one.seq - other.seq)

const ordered = <Key extends string, T>(
  keys: ReadonlyArray<Key>,
  record: Readonly<Partial<Record<Key, T>>>,
): Partial<Record<Key, T>> => {
  const result: Partial<Record<Key, T>> = {}
  for (const key of keys) if (record[key] !== undefined) result[key] = record[key]
  return result
}

/** What a snapshot holds of a principal; the rest follows from its calls. */
export const encodePrincipal = ({
  deficitTokens,
  turns,
  servedAt,
  heldFromMs,
}: Principal): EncodedPrincipal => ({
  deficitTokens,
  turns,
  servedAt,
  heldFromMs,
})

/** The snapshot of a scope, as JSON values. O(n log n) in its calls. */
export const encodeScope = (context: ScopeContext): EncodedScope => ({
  version: snapshotVersion,
  scope: context.scope,
  state: context.state,
  at: context.at,
  policy: context.policy,
  learned: context.learned,
  qos: context.qos === null ? null : encodeQos(context.qos, context.at),
  nextSeq: context.nextSeq,
  waiting: bySeq(HashMap.values(context.waiting)),
  inFlight: bySeq(HashMap.values(context.inFlight)),
  heldMs: context.heldMs,
  principals: byKey(context.principals).map(([name, principal]) => [name, encodePrincipal(principal)]),
  ring: written(context.ring),
  nextPlace: context.ring.nextPlace,
  bypass: context.bypass,
  nested: byKey(context.nested).map(([id, { lent, queue }]) => [id, { lent, waiting: toArray(queue) }]),
  expected: byKey(context.expected),
  rankServedAt: context.rankServedAt,
  passedBefore: context.passedBefore,
  turns: byKey(context.turns),
  foregroundActive: context.foregroundActive,
  budget: ordered(meterNames, context.budget),
  ramp: context.ramp,
  wait: context.wait,
  pacing: ordered(priorityClasses, context.pacing),
  phase: context.phase,
  drain: context.drain,
  primaryOwed: context.primaryOwed,
  quantumEndedHeldMs: context.quantumEndedHeldMs,
  primaryGrantedAt: context.primaryGrantedAt,
  episode: context.episode,
  ended: [[...rowsOf(context.ended.newer)], [...rowsOf(context.ended.older)]],
  counters: context.counters,
  refusalsByKind: ordered(evidenceKinds, context.refusalsByKind),
})

/** A snapshot that this version cannot read. */
export class SnapshotUnreadable extends Error {
  readonly _tag = 'SnapshotUnreadable'
  constructor(problem: string) {
    super(`snapshot is unreadable: ${problem}`)
    this.name = 'SnapshotUnreadable'
  }
}

const HeadSchema = Schema.Struct({
  scope: Schema.String,
  state: Schema.Literals([
    'idle',
    'primaryPending',
    'quietRamp.quiet',
    'quietRamp.admitting',
    'quietRamp.active',
    'auxiliaryDraining',
    'settled',
  ]),
  at: Schema.Int,
  waiting: Schema.Array(Schema.Never),
  inFlight: Schema.Array(Schema.Never),
})

/** Throws `SnapshotUnreadable`; answers the policy and the ramp, completed where an older version wrote less of them. */
const check = (encoded: EncodedScope): { readonly policy: Policy; readonly ramp: Ramp } => {
  const { scope, state, at, waiting, inFlight } = encoded
  // The rows of long lists are looked at one by one, without the schema.
  const isList = (value: unknown): unknown => (Array.isArray(value) ? [] : value)
  try {
    decodeOrThrow(HeadSchema, 'snapshot', {
      scope,
      state,
      at,
      waiting: isList(waiting),
      inFlight: isList(inFlight),
    })
    checkWaiting('snapshot.waiting', waiting)
    checkInFlight('snapshot.inFlight', inFlight)
    for (const name of ['principals', 'nested', 'expected', 'turns'] as const)
      checkPairs(`snapshot.${name}`, encoded[name])
    for (const generation of [0, 1]) checkPairs(`snapshot.ended.${generation}`, encoded.ended?.[generation])
    return {
      policy: restorePolicy(encoded.policy, 'snapshot.policy'),
      ramp: decodeRamp(encoded.ramp),
    }
  } catch (error) {
    throw error instanceof InvalidInput ? new SnapshotUnreadable(error.message) : error
  }
}

/** The context that `encodeScope` wrote. Throws `SnapshotUnreadable` that names the fault. */
export const decodeScope = (input: unknown): ScopeContext => {
  if (typeof input !== 'object' || input === null)
    throw new SnapshotUnreadable(`expected an object, got ${input}`)
  const encoded = input as EncodedScope
  if (encoded.version !== snapshotVersion) {
    throw new SnapshotUnreadable(
      `version ${encoded.version} is not among those known here (1 to ${snapshotVersion})`,
    )
  }
  const { policy, ramp } = check(encoded)
  const blank = emptyContext(encoded.scope, policy, encoded.at)
  // Before there was a held clock, the time of day was it.
  const heldMs = encoded.heldMs ?? encoded.at
  const draft = draftOf({ ...blank, counters: { ...noCounters, ...encoded.counters } }, encoded.at)
  Object.assign(draft, {
    state: encoded.state,
    // Unknown until the next event looks.
    sweepAt: 0,
    nextSeq: encoded.nextSeq,
    learned: encoded.learned,
    bypass: encoded.bypass,
    foregroundActive: encoded.foregroundActive,
    budget: encoded.budget,
    ramp,
    // Older scopes had no probe.
    wait: encoded.wait && { ...encoded.wait, probeId: encoded.wait.probeId ?? null },
    pacing: encoded.pacing,
    phase: encoded.phase,
    drain: encoded.drain,
    primaryOwed: encoded.primaryOwed,
    heldMs,
    quantumEndedHeldMs: encoded.quantumEndedHeldMs ?? encoded.quantumEndedAt ?? heldMs,
    primaryGrantedAt: encoded.primaryGrantedAt,
    episode: encoded.episode,
    refusalsByKind: encoded.refusalsByKind ?? {},
    ended: endingsOf(...encoded.ended),
    expected: restoreExpected(encoded),
    rankServedAt: encoded.rankServedAt ?? [0, 0, 0, 0],
    passedBefore: encoded.passedBefore ?? 0,
    turns: HashMap.fromIterable(encoded.turns),
    heldTurns: encoded.turns.filter(([, turn]) => turn.betweenRounds === 'hold').length,
    nested: HashMap.fromIterable(
      encoded.nested.map(([id, { lent, waiting }]) => [id, { lent, queue: fromArray(waiting) }] as const),
    ),
  } satisfies Partial<ScopeContext>)
  restoreWaiting(draft, encoded.waiting)
  restorePrincipals(draft, encoded)
  restoreFlights(draft, encoded.inFlight)
  if (policy.qos !== null) {
    const calls = [...encoded.waiting, ...encoded.inFlight].map(({ call }) => call)
    draft.qos = restoreQos(encoded.qos, calls)
    reorderPrimaries(draft)
  }
  return draft
}
