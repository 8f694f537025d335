/**
 * Judges a scope from outside: its own model of the places, quotas and waits that a policy speaks of, made from
 * events and decisions with its own arithmetic. It shares nothing with the core but the words of a policy.
 */
import { HashMap } from 'effect'
import {
  type Decision,
  type Policy,
  type ScopeContext,
  type ScopeEvent,
  type Waiting,
  waitReason,
  wakeAt,
} from '../../machines/index.ts'
import { BudgetModel } from './budget-model.ts'

export class Unjust extends Error {}

const demand = (holds: boolean, problem: () => string): void => {
  if (!holds) throw new Unjust(problem())
}

interface Seat {
  readonly lane: 'primary' | 'auxiliary'
  readonly principal: string
  readonly borrowed: boolean
  /** Let through for the sake of another: it took no turn of its own. */
  readonly excepted: boolean
}

const roundHalfEven = (value: number): number => {
  const below = Math.floor(value)
  if (value - below !== 0.5) return Math.round(value)
  return below + (below % 2)
}

/** Places that a policy keeps for primaries. */
const keptPlaces = ({ capacity, reserve, reserveFraction }: Policy): number => {
  if (reserve !== 'auto') return Math.min(reserve, capacity - 1)
  return capacity <= 1 ? 0 : Math.max(1, Math.min(roundHalfEven(capacity * reserveFraction), capacity - 1))
}

export class OrderJudge {
  readonly #seats = new Map<string, Seat>()
  readonly #calls = new Map<string, { lane: 'primary' | 'auxiliary'; principal: string }>()
  readonly #budget: BudgetModel
  #policy: Policy
  #primaryGrantedAt = Number.NEGATIVE_INFINITY
  #foreground = false
  #learned = false
  judged = 0

  constructor(policy: Policy, atMs: number) {
    this.#policy = policy
    this.#budget = new BudgetModel(policy, atMs)
  }

  observe(event: ScopeEvent, decisions: ReadonlyArray<Decision>, after: ScopeContext): void {
    this.#budget.observe(event)
    for (const decision of decisions) this.#budget.decided(decision)
    if (event.type === 'policy.changed') this.#policy = event.policy
    if (event.type === 'foreground.changed') this.#foreground = event.active
    if (event.type === 'call.submitted') this.#calls.set(event.call.id, event.call)
    if (event.type === 'call.settled' || event.type === 'call.withdrawn') {
      if (event.type === 'call.settled' || !HashMap.has(after.inFlight, event.callId))
        this.#seats.delete(event.callId)
    }
    if (event.type === 'host.recovered') this.#seats.clear()
    for (const { callId, verdict, reason, at } of decisions) {
      if (verdict === 'expire') this.#seats.delete(callId)
      if (verdict !== 'admit' && verdict !== 'release') continue
      const { lane, principal } = this.#calls.get(callId)!
      this.#seats.set(callId, {
        lane,
        principal,
        borrowed: reason === 'nested',
        excepted: reason === 'nested' || reason === 'dependency',
      })
      if (lane === 'primary') this.#primaryGrantedAt = at
      this.#judgeGrant(callId, reason)
    }
    this.#learned = this.#policy.capacityFloor !== null
    demand(this.#seats.size === HashMap.size(after.inFlight), () => `${this.#seats.size} seats are taken`)
    const next = wakeAt(after)
    demand(next === null || next > after.at, () => `wakes at ${next}, which has passed at ${after.at}`)
    if (!this.#learned) for (const one of this.#firsts(after)) this.#judgeWait(one, after)
  }

  /** I2, and no quantum from places or quotas that auxiliaries may not have. */
  #judgeGrant(callId: string, reason: string): void {
    const { lane, principal } = this.#seats.get(callId)!
    if (reason === 'nested') return
    demand(this.#taken() <= this.#policy.capacity, () => `${callId} is one too many (${reason})`)
    if (lane !== 'auxiliary' || reason === 'dependency') return
    const auxiliaries = this.#count((seat) => seat.lane === 'auxiliary' && !seat.excepted)
    const places = this.#policy.capacity - keptPlaces(this.#policy)
    demand(auxiliaries <= places, () => `${callId} has a reserved place (${reason})`)
    const quota = this.#quotaOf(principal)
    const own = this.#count(
      (seat) => seat.lane === 'auxiliary' && !seat.excepted && seat.principal === principal,
    )
    demand(own <= quota, () => `${callId} is above the quota of ${principal} (${reason})`)
  }

  /** Of each lane and principal the calls that came first: those behind wait for them. */
  #firsts({ waiting }: ScopeContext): ReadonlyArray<Waiting> {
    const first = new Map<string, Waiting>()
    for (const one of HashMap.values(waiting)) {
      if (one.waitsFor.length > 0 || one.unclaimedUntilMs !== null || one.urgent) continue
      const key = one.call.lane === 'primary' ? 'primary' : `auxiliary ${one.call.principal}`
      const before = first.get(key)
      if (before === undefined || one.seq < before.seq) first.set(key, one)
    }
    return [...first.values()]
  }

  /** A free place that a call may have is not kept from it unless `why` says by what, and that is true. */
  #judgeWait(waiting: Waiting, after: ScopeContext): void {
    const { reason, wakeAt: untilMs } = waitReason(after, waiting)
    const { id, lane, principal } = waiting.call
    const { capacity } = this.#policy
    const told = () => `${id} waits for ${reason} in ${after.state}, ${this.#taken()} of ${capacity} taken`
    this.judged += 1
    demand(untilMs === null || untilMs > after.at, () => `${told()} until a time that has passed`)
    const primaries = [...HashMap.values(after.waiting)].filter(({ call }) => call.lane === 'primary')
    const auxiliaries = this.#count((seat) => seat.lane === 'auxiliary')
    const places = capacity - keptPlaces(this.#policy)
    const squeezed = this.#policy.squeezeMs > 0 && after.at < this.#primaryGrantedAt + this.#policy.squeezeMs
    const least = squeezed ? Math.max(1, Math.floor(places / 2)) : places
    const truths: Partial<Record<typeof reason, () => boolean>> = {
      'capacity-full': () => this.#taken() >= capacity,
      'reserve-kept': () => auxiliaries >= least || this.#taken() >= least,
      quota: () =>
        this.#count((seat) => seat.lane === 'auxiliary' && seat.principal === principal) >=
        this.#quotaOf(principal),
      'foreground-active': () => this.#foreground,
      'primary-pending': () => primaries.length > 0,
      'primary-active': () => this.#count((seat) => seat.lane === 'primary') > 0,
      'auxiliaries-in-flight': () => this.#policy.inFlight !== 'tolerate' && auxiliaries > 0,
      'turn-held': () => HashMap.size(after.turns) > 0,
      'provider-wait': () => untilMs !== null,
      budget: () => this.#budgetHolds(waiting, untilMs, after),
      'quiet-window': () => untilMs !== null,
      // The provider has refused for tokens, and a time is named at which it is asked again.
      forecast: () => untilMs !== null && after.belief.refusal !== null,
      'drain-pace': () => untilMs !== null && untilMs - after.at <= this.#policy.drainIntervalMs,
      pacing: () => Object.keys(after.pacing).length > 0,
      'behind-others': () => HashMap.size(after.waiting) > 1,
    }
    const isTrue = truths[reason]
    demand(isTrue !== undefined, () => `${told()}, which is no reason that a policy gives`)
    demand(isTrue!(), () => `${told()}, which is not true`)
    // I6: places that auxiliaries may not have never stay free while a primary waits for fairness or for auxiliaries.
    if (lane === 'primary' && this.#taken() < capacity)
      demand(reason !== 'capacity-full' && reason !== 'fairness-quantum', () => `${told()}: a place is free`)
    // Others of its lane may be before it, but then one of them says what holds them all.
    if (reason === 'behind-others' && lane === 'primary') {
      const holders = primaries
        .filter((one) => one.seq !== waiting.seq)
        .map((one) => waitReason(after, one).reason)
      demand(
        this.#taken() >= capacity ||
          holders.some((other) => other !== 'behind-others' && other !== 'dependencies'),
        () => `${told()}, and nothing holds those before it: ${holders.join(', ')}`,
      )
    }
  }

  /** Tokens or requests are missing, and at the time that is told they are there: a millisecond of rounding apart. */
  #budgetHolds({ call }: Waiting, untilMs: number | null, { at }: ScopeContext): boolean {
    const fitsMs = this.#budget.fitsAtMs(call, at)
    if (untilMs === null) return false
    // Where the model has just enough, the scope may still round up to the next millisecond.
    if (fitsMs <= at) return untilMs - at <= 1
    // A primary may have to wait for more than its budget.
    return call.lane === 'primary' ? untilMs >= fitsMs - 1 : Math.abs(untilMs - fitsMs) <= 1
  }

  #quotaOf(principal: string): number {
    const { quotas, principalQuota } = this.#policy
    return (Object.hasOwn(quotas, principal) ? quotas[principal] : principalQuota) ?? Number.POSITIVE_INFINITY
  }

  #count(isCounted: (seat: Seat) => boolean): number {
    let count = 0
    for (const seat of this.#seats.values()) if (isCounted(seat)) count += 1
    return count
  }

  #taken(): number {
    return this.#count(({ borrowed }) => !borrowed)
  }
}
