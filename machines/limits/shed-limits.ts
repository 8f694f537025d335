/**
 * Quality of service of a shared server that sheds rather than queues: calls beyond a principal's or a class's share
 * are refused at once, so that the others keep theirs. Live calls (waiting or running) count. Rates are kept as the generic cell rate algorithm does (ATM Forum, "Traffic Management
 * Specification 4.0", 1996): one time for each bucket, at which it will be full.
 */
import { HashMap, HashSet, Option } from 'effect'
import type { Call, PriorityClass } from '../model/call.ts'
import type { ShedReason } from '../model/decision.ts'
import type { QosPolicy } from '../model/policy.ts'

/** Who holds what of the limits. */
export interface QosState {
  /** Live calls. */
  readonly total: number
  readonly byPrincipal: HashMap.HashMap<string, number>
  /** Live calls that are not counted: they run in the places of calls that are. */
  readonly exempt: HashSet.HashSet<string>
  /** When each bucket is full, epoch milliseconds, by class and principal. One that is missing, or past, is full. */
  readonly fullAtMs: HashMap.HashMap<string, number>
  /** Number of buckets above which full ones are dropped. */
  readonly sweepAbove: number
}

const leastSweepAbove = 1_024

export const emptyQos: QosState = {
  total: 0,
  byPrincipal: HashMap.empty(),
  exempt: HashSet.empty(),
  fullAtMs: HashMap.empty(),
  sweepAbove: leastSweepAbove,
}

/** Bands that a class leaves to those above it; the lowest class is shed first. */
const bandsAbove: Readonly<Record<PriorityClass, number>> = {
  interactive: 0,
  orchestration: 1,
  hydration: 2,
  background_ingestion: 3,
}

/** A policy's numbers, with what is `auto` sized by the capacity. */
export interface QosLimits {
  readonly capacity: number
  readonly bandPlaces: number
  readonly principalCalls: number
  readonly burstCalls: number
  readonly callsPerSecond: number
}

const sized = (value: number | 'auto', auto: number): number => (value === 'auto' ? auto : value)

export const limitsOf = (policy: QosPolicy, capacity: number): QosLimits => ({
  capacity,
  bandPlaces: sized(policy.bandPlaces, Math.max(1, Math.floor(capacity / 8))),
  principalCalls: sized(policy.principalCalls, Math.max(1, Math.floor(capacity / 4))),
  burstCalls: sized(policy.burstCalls, Math.max(4, Math.floor(capacity / 4))),
  callsPerSecond: sized(policy.callsPerSecond, capacity),
})

/** Live calls below which a class is let in. Never below 1: an idle server serves every class, however small it is. */
export const classCeiling = ({ capacity, bandPlaces }: QosLimits, priorityClass: PriorityClass): number =>
  Math.max(1, capacity - bandsAbove[priorityClass] * bandPlaces)

const countOf = (map: HashMap.HashMap<string, number>, key: string): number =>
  Option.getOrElse(HashMap.get(map, key), () => 0)

const bucketOf = ({ priorityClass, principal }: Call): string => `${priorityClass} ${principal}`

/** How far a time of today may be off that was added up call by call: a number holds it to 1/4,096 ms. */
const roundingMs = 1 / 8_192

/** Milliseconds until the bucket holds a call. */
const bucketWaitMs = (state: QosState, limits: QosLimits, call: Call, atMs: number): number => {
  const missingMs = countOf(state.fullAtMs, bucketOf(call)) - atMs
  const allowedMs = (limits.burstCalls - 1) * (1_000 / limits.callsPerSecond) + limits.burstCalls * roundingMs
  return Math.max(0, Math.ceil(missingMs - allowedMs))
}

export interface Shed {
  readonly reason: ShedReason
  /** Milliseconds after which the same call may be let in; null where a call has to end first, which has no time. */
  readonly retryAfterMs: number | null
}

/** Why the call is refused, or null when it may come in. Looks only; `entered` counts it. */
export const shedding = (state: QosState, limits: QosLimits, call: Call, atMs: number): Shed | null => {
  const { principal, priorityClass } = call
  const { capacity, bandPlaces } = limits
  const own = countOf(state.byPrincipal, principal)
  if (own >= limits.principalCalls) return { reason: 'principal-quota', retryAfterMs: null }
  if (state.total >= classCeiling(limits, priorityClass))
    return { reason: 'class-ceiling', retryAfterMs: null }
  if (priorityClass !== 'interactive' && state.total >= capacity - 3 * bandPlaces) {
    // One that has nothing live is below any share, so it need not be among those who share.
    const share = Math.max(1, Math.floor(capacity / HashMap.size(state.byPrincipal)))
    if (own >= share) return { reason: 'fair-share', retryAfterMs: null }
  }
  const waitMs = bucketWaitMs(state, limits, call, atMs)
  return waitMs > 0 ? { reason: 'bucket-empty', retryAfterMs: waitMs } : null
}

const counted = (state: QosState, principal: string, by: 1 | -1): QosState => {
  const own = countOf(state.byPrincipal, principal) + by
  const byPrincipal =
    own > 0 ? HashMap.set(state.byPrincipal, principal, own) : HashMap.remove(state.byPrincipal, principal)
  return { ...state, total: state.total + by, byPrincipal }
}

/** Counts a live call that pays nothing: one that was in before there were limits, or before a restart. */
export const adopted = (state: QosState, { principal }: Call): QosState => counted(state, principal, 1)

/** Counts a call that was let in, and takes it out of its bucket. */
export const entered = (state: QosState, limits: QosLimits, call: Call, atMs: number): QosState => {
  const key = bucketOf(call)
  const fullAtMs = Math.max(countOf(state.fullAtMs, key), atMs) + 1_000 / limits.callsPerSecond
  const charged = { ...state, fullAtMs: HashMap.set(state.fullAtMs, key, fullAtMs) }
  return swept(counted(charged, call.principal, 1), atMs)
}

/** Lets a call pass uncounted. */
export const exempted = (state: QosState, { id }: Call): QosState => ({
  ...state,
  exempt: HashSet.add(state.exempt, id),
})

/** The call has ended. Its bucket stays, so that one call after the other is limited too. */
export const departed = (state: QosState, { id, principal }: Call): QosState =>
  HashSet.has(state.exempt, id)
    ? { ...state, exempt: HashSet.remove(state.exempt, id) }
    : counted(state, principal, -1)

/** The buckets that are not full. A full one says nothing that a missing one does not, so to drop it forgives nothing. */
const openBuckets = ({ fullAtMs }: QosState, atMs: number): QosState['fullAtMs'] =>
  HashMap.filter(fullAtMs, (time) => time > atMs)

const swept = (state: QosState, atMs: number): QosState => {
  if (HashMap.size(state.fullAtMs) <= state.sweepAbove) return state
  const fullAtMs = openBuckets(state, atMs)
  return { ...state, fullAtMs, sweepAbove: Math.max(leastSweepAbove, 2 * HashMap.size(fullAtMs)) }
}

/** What of it does not follow from the live calls, in a fixed order. */
export interface EncodedQos {
  readonly fullAtMs: ReadonlyArray<readonly [string, number]>
  readonly exempt: ReadonlyArray<string>
}

export const encodeQos = (state: QosState, atMs: number): EncodedQos => ({
  fullAtMs: HashMap.toEntries(openBuckets(state, atMs)).sort(([one], [other]) => (one < other ? -1 : 1)),
  exempt: [...state.exempt].sort(),
})

/** `calls` are the live ones. Without an encoded state, every bucket is full. */
export const restoreQos = (encoded: EncodedQos | null, calls: ReadonlyArray<Call>): QosState => {
  const exempt = HashSet.fromIterable(encoded?.exempt ?? [])
  const counting = calls.filter(({ id }) => !HashSet.has(exempt, id))
  const fullAtMs = HashMap.fromIterable(encoded?.fullAtMs ?? [])
  return { ...counting.reduce(adopted, emptyQos), exempt, fullAtMs }
}
