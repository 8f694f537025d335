/**
 * The versioned codec of a scope's snapshot: plain JSON in a fixed order, so that equal scopes give equal
 * bytes. Queues, heaps and counts are left out, because they follow from the calls.
 */
import { HashMap, Schema } from 'effect'
import { endingsOf, rowsOf } from '../collections/ended-log.ts'
import { fromArray, toArray } from '../collections/queue.ts'
import type { Belief } from '../limits/belief/belief.ts'
import { noDemand } from '../limits/belief/demand.ts'
import { meterNames } from '../limits/budget.ts'
import { encodeQos, restoreQos } from '../limits/shed-limits.ts'
import { lanes, priorityClasses } from '../model/call.ts'
import { evidenceKinds } from '../model/evidence.ts'
import { decodeOrThrow, InvalidInput } from '../model/invalid.ts'
import type { Policy } from '../model/policy.ts'
import { restorePolicy } from '../model/policy-input.ts'
import { written } from '../scheduling/debts.ts'
import { reorderPrimaries } from '../scheduling/primary-order.ts'
import type { InFlight } from '../state/calls.ts'
import { emptyContext, lookup, openPhase, type Principal, type ScopeContext } from '../state/context.ts'
import { noCounters } from '../state/counts.ts'
import { draftOf } from '../state/draft.ts'
import { decodeBelief, encodeBelief } from './belief-schema.ts'
import { type EncodedPrincipal, type EncodedScope, snapshotVersion } from './encoded.ts'
import {
  byGrant,
  restoreExpected,
  restoreFavor,
  restoreFlights,
  restorePrincipals,
  restoreWaiting,
} from './restore.ts'
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

/**
 * The order of grants, for timeouts, where times and places do not tell it: several of one event share
 * their time. Of one call that was granted twice in it the foremost place counts.
 */
export const grantOrder = ({ grants, inFlight }: ScopeContext): Pick<EncodedScope, 'granted'> => {
  const ids = new Set<string>()
  for (const lane of lanes) {
    for (const { id, grantedAt } of toArray(grants[lane])) {
      if (lookup(inFlight, id)?.grantedAt === grantedAt) ids.add(id)
    }
  }
  const granted = [...ids]
  const flights = granted.map((id) => lookup(inFlight, id) as InFlight)
  const isKnown = lanes.every((lane) => {
    const own = flights.filter(({ call }) => call.lane === lane)
    return own.every((flight, index) => index === 0 || byGrant(own[index - 1]!, flight) < 0)
  })
  return isKnown ? {} : { granted }
}

/** The principals that stand for a turn, each with its place. */
export function* placesOf({
  principals,
}: Pick<ScopeContext, 'principals'>): Generator<readonly [string, number]> {
  for (const [name, { stands }] of HashMap.entries(principals))
    if (stands !== null) yield [name, stands.place]
}

export const byPlace = ([, one]: readonly [string, number], [, other]: readonly [string, number]): number =>
  one - other

const encodeFavor = ({ favor }: ScopeContext): Pick<EncodedScope, 'favor'> => {
  const names = (turns: typeof favor.begun) => byKey(turns).map(([name]) => name)
  const { begunSinceMs } = favor
  const [begun, begunBefore] = [names(favor.begun), names(favor.begunBefore)]
  const seats = favor.ranks.flatMap(({ allAside, early }, rank) =>
    allAside.size === 0 ? [] : [{ rank, aside: toArray(allAside).map(({ id }) => id), early: byKey(early) }],
  )
  const isEmpty = begun.length + begunBefore.length + seats.length + begunSinceMs === 0
  return isEmpty ? {} : { favor: { begun, begunBefore, begunSinceMs, seats } }
}

/** What a snapshot holds of a principal; the rest follows from its calls. */
export const encodePrincipal = ({ tag, servedAt, heldFromMs }: Principal): EncodedPrincipal => ({
  tag,
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
  ...grantOrder(context),
  heldMs: context.heldMs,
  principals: byKey(context.principals).map(([name, principal]) => [name, encodePrincipal(principal)]),
  ring: [...placesOf(context)].sort(byPlace),
  nextPlace: context.lines.nextPlace,
  virtualTokens: context.virtualTokens,
  debts: written(context.debts),
  bypass: context.bypass,
  nested: byKey(context.nested).map(([id, { lent, queue }]) => [id, { lent, waiting: toArray(queue) }]),
  expected: byKey(context.expected),
  rankServedAt: context.rankServedAt,
  passedBefore: context.passedBefore,
  turns: byKey(context.turns),
  foregroundActive: context.foregroundActive,
  ...encodeFavor(context),
  budget: ordered(meterNames, context.budget),
  belief: encodeBelief(context.belief),
  demand: context.demand,
  wait: context.wait,
  pacing: ordered(priorityClasses, context.pacing),
  phase: context.phase,
  drain: context.drain,
  primaryOwed: context.primaryOwed,
  quantumEndedHeldMs: context.quantumEndedHeldMs,
  primaryGrantedAt: context.primaryGrantedAt,
  episode: context.episode,
  ended: [[...rowsOf(context.ended.newer)], [...rowsOf(context.ended.older)]],
  ...(context.ended.sinceMs === 0 ? {} : { endedSinceMs: context.ended.sinceMs }),
  ...(HashMap.isEmpty(context.unknown) ? {} : { unknown: byKey(context.unknown) }),
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

/** Every name that stands for a turn is a principal. */
const checkRing = ({ principals, ring }: EncodedScope): void => {
  const known = new Set(principals.map(([name]) => name))
  for (const place of ring) {
    const name = typeof place === 'string' ? place : place[0]
    if (!known.has(name))
      throw new SnapshotUnreadable(`ring: expected names of principals, got ${JSON.stringify(name)}`)
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

/** Throws `SnapshotUnreadable`; answers the policy and the belief, completed where an older version wrote less of them. */
const check = (encoded: EncodedScope): { readonly policy: Policy; readonly belief: Belief } => {
  const { scope, state, at, waiting, inFlight } = encoded
  // `checkWaiting` and its siblings check the rows of long lists one by one; the schema does not.
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
    if (encoded.unknown !== undefined) checkPairs('snapshot.unknown', encoded.unknown)
    for (const generation of [0, 1]) checkPairs(`snapshot.ended.${generation}`, encoded.ended?.[generation])
    return {
      policy: restorePolicy(encoded.policy, 'snapshot.policy'),
      belief: decodeBelief(encoded.belief, (encoded as { ramp?: unknown }).ramp),
    }
  } catch (error) {
    throw error instanceof InvalidInput ? new SnapshotUnreadable(error.message) : error
  }
}

/** Reads a context that `encodeScope` wrote. Throws `SnapshotUnreadable` that names the fault. */
export const decodeScope = (input: unknown): ScopeContext => {
  try {
    return decoded(input)
  } catch (error) {
    // A missing or wrong field shows where it is first used.
    if (error instanceof TypeError || error instanceof RangeError)
      throw new SnapshotUnreadable(`a field is missing or is not what was written: ${error.message}`)
    throw error
  }
}

const decoded = (input: unknown): ScopeContext => {
  if (typeof input !== 'object' || input === null)
    throw new SnapshotUnreadable(`expected an object, got ${input}`)
  const encoded = input as EncodedScope
  if (encoded.version !== snapshotVersion) {
    throw new SnapshotUnreadable(
      `version ${encoded.version} is not among those known here (1 to ${snapshotVersion})`,
    )
  }
  const { policy, belief } = check(encoded)
  const blank = emptyContext(encoded.scope, policy, encoded.at)
  // Before there was a held clock, the time of day was it.
  const heldMs = encoded.heldMs ?? encoded.at
  const draft = draftOf({ ...blank, counters: { ...noCounters, ...encoded.counters } }, encoded.at)
  Object.assign(draft, {
    state: encoded.state,
    // The next event works this time out.
    sweepAt: 0,
    nextSeq: encoded.nextSeq,
    learned: encoded.learned,
    bypass: encoded.bypass,
    foregroundActive: encoded.foregroundActive,
    budget: encoded.budget,
    belief,
    demand: encoded.demand ?? noDemand,
    // Older scopes had no probe.
    wait: encoded.wait && { ...encoded.wait, probeId: encoded.wait.probeId ?? null },
    pacing: encoded.pacing,
    // Older scopes planned nothing.
    phase: { ...openPhase, ...encoded.phase },
    drain: { ...encoded.drain, heldServed: encoded.drain.heldServed ?? false },
    primaryOwed: encoded.primaryOwed,
    heldMs,
    quantumEndedHeldMs: encoded.quantumEndedHeldMs ?? encoded.quantumEndedAt ?? heldMs,
    primaryGrantedAt: encoded.primaryGrantedAt,
    episode: encoded.episode,
    refusalsByKind: encoded.refusalsByKind ?? {},
    ended: endingsOf(...encoded.ended, encoded.endedSinceMs ?? 0),
    unknown: HashMap.fromIterable(encoded.unknown ?? []),
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
  checkRing(encoded)
  restorePrincipals(draft, encoded)
  restoreFlights(draft, encoded.inFlight, encoded.granted)
  if (policy.qos !== null) {
    const calls = [...encoded.waiting, ...encoded.inFlight].map(({ call }) => call)
    draft.qos = restoreQos(encoded.qos, calls)
    reorderPrimaries(draft)
  }
  restoreFavor(draft, encoded)
  return draft
}
