/**
 * The schedule to compare with. The oracle knows the provider's rules with their parameters, its own traffic,
 * and how long each call takes. It does not know future arrivals or the draws of chance. Its first goal is
 * the shortest waits of primaries, its second the most auxiliary tokens.
 *
 * Method. It keeps the provider's state by the provider's own arithmetic (`mirror.ts`). At every arrival,
 * ending and possible change it plans when each waiting primary would get in if no other call were sent
 * (`plan.ts`). An auxiliary goes exactly when the plan with it is no worse than the plan without it. This one
 * test yields silence while a ceiling must fall, backfill of minutes that a primary cannot use, and warming
 * up: while a primary never gets in by waiting, every auxiliary is sent until the plan says that the primary
 * gets in. With only a few auxiliaries, plans that keep some for later minutes are tried too
 * (`look-ahead.ts`). Among auxiliaries it sends the set that fills the present room best (`packing.ts`),
 * because a ceiling grows from the tokens sent now. It never aborts a call, never delays a primary to warm up
 * for another, and keeps no room for primaries that have not come.
 */
import type { Scheduler, SimulatedCall } from '../../world.ts'
import type { Contender, Ground } from '../ground.ts'
import { rulesOf } from '../run.ts'
import { lookAhead, scarce } from './look-ahead.ts'
import { type Mirror, MirrorRules } from './mirror.ts'
import { mostCandidates, pack } from './packing.ts'
import { isWorse, type Planned, planDepth, planPrimaries } from './plan.ts'

/**
 * How often a plan that keeps auxiliaries back is checked again, ms. Whole seconds meet the minute
 * boundaries.
 */
const lookAgainMs = 1_000
/** Pause after a refusal by chance. A refusal costs the oracle nothing. */
const overloadPauseMs = 1

export const oracle: Contender = (ground) => new Oracle(ground)

class Oracle implements Scheduler {
  readonly #ground: Ground
  readonly #rules: MirrorRules
  #mirror: Mirror
  /** Fewest tokens first, then first come. */
  readonly #primaries: SimulatedCall[] = []
  /** The primaries that plans look at, first come first. */
  #planned: ReadonlyArray<SimulatedCall> = []
  /** Order of arrival. */
  readonly #order = new Map<string, number>()
  /** Fewest tokens first, then first come. */
  readonly #auxiliaries: SimulatedCall[] = []
  /** Until this time a sparing plan sends no auxiliary. Any new call ends the plan. */
  #keptUntilMs = 0
  /** When the oracle acts next; Infinity when only an event makes it act. */
  #wakeAtMs = Number.POSITIVE_INFINITY
  #cancelWake: () => void = () => {}

  constructor(ground: Ground) {
    this.#ground = ground
    const { provider, seed } = ground.scenario
    this.#rules = new MirrorRules({ ...provider, rules: rulesOf(ground.scenario), seed })
    this.#mirror = this.#rules.initial
  }

  submit(call: SimulatedCall): void {
    this.#keptUntilMs = 0
    const line = call.lane === 'primary' ? this.#primaries : this.#auxiliaries
    line.splice(countUpTo(line, call.inputTokens), 0, call)
    if (!this.#order.has(call.id)) this.#order.set(call.id, this.#order.size)
    if (call.lane === 'primary') this.#replan()
    this.#wake(this.#nowMs)
  }

  /** The oracle knows the provider's state, so it also counts the calls of strangers. */
  strangerAccepted(call: SimulatedCall): void {
    const mirror = this.#rules.advance(this.#mirror, this.#nowMs)
    this.#mirror = this.#rules.accept(mirror, call, this.#nowMs) ?? mirror
    this.#wake(this.#nowMs)
  }

  #replan(): void {
    const smallest = this.#primaries.slice(0, planDepth)
    this.#planned = smallest.sort((one, other) => this.#order.get(one.id)! - this.#order.get(other.id)!)
  }

  get #nowMs(): number {
    return this.#ground.world.timeline.now()
  }

  /** Acts at `atMs`, after all events of that time were reported. */
  #wake(atMs: number): void {
    if (atMs >= this.#wakeAtMs) return
    this.#cancelWake()
    this.#wakeAtMs = atMs
    this.#cancelWake = this.#ground.world.timeline.at(atMs, () => {
      this.#wakeAtMs = Number.POSITIVE_INFINITY
      this.#act()
    })
  }

  #act(): void {
    const nowMs = this.#nowMs
    this.#mirror = this.#rules.advance(this.#mirror, nowMs)
    let plan = this.#plan(this.#mirror)
    for (;;) {
      while (plan.next !== null && plan.next.atMs <= nowMs) {
        const { call } = plan.next
        this.#primaries.splice(this.#primaries.indexOf(call), 1)
        this.#replan()
        this.#send(call)
        plan = this.#plan(this.#mirror)
      }
      if (this.#keptUntilMs > nowMs || this.#spendSparingly(plan)) break
      if (this.#sendAuxiliaries(plan) === 0) break
      plan = this.#plan(this.#mirror)
    }
    this.#wakeWhenSomethingChanges(plan)
  }

  /**
   * Sends the first calls of a plan over few auxiliaries. False when no such plan is needed, or none helps.
   */
  #spendSparingly(plan: Planned<SimulatedCall>): boolean {
    const count = this.#auxiliaries.length
    if (plan.never === 0 || count === 0 || count > scarce) return false
    const waiting = { primaries: this.#planned, auxiliaries: this.#auxiliaries }
    const ahead = lookAhead(this.#rules, this.#mirror, waiting, plan, this.#nowMs)
    if (ahead === null) return false
    this.#keptUntilMs = ahead.nextAtMs
    for (const call of ahead.send) this.#sendAuxiliary(call)
    return true
  }

  #plan(mirror: Mirror): Planned<SimulatedCall> {
    return planPrimaries(this.#rules, mirror, this.#planned, this.#nowMs)
  }

  #wakeWhenSomethingChanges({ next }: Planned<SimulatedCall>): void {
    const nowMs = this.#nowMs
    if (next !== null) this.#wake(next.atMs)
    if (this.#keptUntilMs > nowMs) return this.#wake(this.#keptUntilMs)
    const [smallest] = this.#auxiliaries
    if (smallest === undefined) return
    const fitsAtMs = this.#rules.acceptsAtMs(this.#mirror, smallest, nowMs)
    if (fitsAtMs === null) return
    // The call fits, and the plan keeps it back.
    const againMs = (Math.floor(nowMs / lookAgainMs) + 1) * lookAgainMs
    this.#wake(fitsAtMs > nowMs ? fitsAtMs : againMs)
  }

  /** Sends the set of harmless auxiliaries that fills the room best. Returns their number. */
  #sendAuxiliaries(plan: Planned<SimulatedCall>): number {
    const roomTokens = this.#rules.roomTokens(this.#mirror, this.#nowMs)
    const fitting = countUpTo(this.#auxiliaries, roomTokens)
    if (fitting === 0) return 0
    let sent = 0
    for (const call of this.#bestOf(fitting, roomTokens)) if (this.#sendIfHarmless(call, plan)) sent += 1
    return sent > 0 ? sent : this.#sendLargestHarmless(fitting, plan)
  }

  /** The most valuable of the first `fitting` auxiliaries that fill the room best, best first. */
  #bestOf(fitting: number, roomTokens: number): ReadonlyArray<SimulatedCall> {
    if (roomTokens === Number.POSITIVE_INFINITY) {
      const worth = new Map(this.#auxiliaries.map((call) => [call, this.#rules.worthOf(call)]))
      return this.#auxiliaries
        .toSorted((one, other) => worth.get(other)! - worth.get(one)!)
        .slice(0, mostCandidates)
    }
    const largest = this.#auxiliaries.slice(Math.max(0, fitting - mostCandidates), fitting)
    const tokens = largest.map(({ inputTokens }) => inputTokens)
    return pack(tokens, roomTokens).map((index) => largest[index]!)
  }

  /** A smaller call harms no more than a larger one. */
  #sendLargestHarmless(fitting: number, plan: Planned<SimulatedCall>): number {
    let [low, high] = [0, fitting - 1]
    while (low < high) {
      const middle = Math.ceil((low + high) / 2)
      if (this.#afterHarmless(this.#auxiliaries[middle]!, plan) === null) high = middle - 1
      else low = middle
    }
    return this.#sendIfHarmless(this.#auxiliaries[low]!, plan) ? 1 : 0
  }

  /** The provider after the call; null when it would refuse the call or make a primary wait longer. */
  #afterHarmless(call: SimulatedCall, plan: Planned<SimulatedCall>): Mirror | null {
    const after = this.#rules.accept(this.#mirror, call, this.#nowMs)
    if (after === null || this.#primaries.length === 0) return after
    return isWorse(this.#plan(after), plan) ? null : after
  }

  #sendIfHarmless(call: SimulatedCall, plan: Planned<SimulatedCall>): boolean {
    if (this.#afterHarmless(call, plan) === null) return false
    this.#sendAuxiliary(call)
    return true
  }

  #sendAuxiliary(call: SimulatedCall): void {
    this.#auxiliaries.splice(this.#auxiliaries.indexOf(call), 1)
    this.#send(call)
  }

  #send(call: SimulatedCall): void {
    const { world } = this.#ground
    const nowMs = this.#nowMs
    world.dispatch(call, {
      accepted: () => {},
      completed: () => this.#wake(this.#nowMs),
      refused: ({ kind }) => {
        const pauseMs = kind === 'overloaded' ? overloadPauseMs : lookAgainMs
        world.timeline.after(pauseMs, () => this.submit(call))
      },
    })
    // Chance may have refused the call; then nothing was charged.
    if (world.records.get(call.id)!.acceptedAtMs === null) return
    this.#mirror = this.#rules.accept(this.#mirror, call, nowMs) ?? this.#mirror
  }
}

/** The number of calls, fewest tokens first, with at most `tokens` tokens. */
const countUpTo = (calls: ReadonlyArray<SimulatedCall>, tokens: number): number => {
  let [low, high] = [0, calls.length]
  while (low < high) {
    const middle = (low + high) >> 1
    if (calls[middle]!.inputTokens <= tokens) low = middle + 1
    else high = middle
  }
  return low
}
