/**
 * The provider as the oracle knows it: its rules, its state, and the ends of the calls in flight. Persistent,
 * so that a plan can be tried on a copy at no cost. Chance (`overload`) is left out: the oracle knows the
 * odds, not the draws.
 */
import {
  allOf,
  type Composite,
  type CompositeState,
  type Latency,
  makeRule,
  type RuleSpec,
  type Statement,
} from '../../../emulator/index.ts'

/** The properties of a call that limits count. */
export interface Load {
  readonly inputTokens: number
  readonly outputTokens: number
}

interface Flight extends Load {
  readonly endsAtMs: number
}

export interface Mirror {
  readonly state: CompositeState
  /** Soonest end first. Empty when no rule depends on how calls end. */
  readonly flights: ReadonlyArray<Flight>
}

export interface MirrorOptions {
  readonly rules: ReadonlyArray<RuleSpec>
  readonly states: Statement | null
  readonly latency: Latency
  readonly seed: number
}

/** Rules that free or charge something when a call ends. */
const endingsMatterTo: ReadonlySet<string> = new Set([
  'concurrency',
  'output-tokens-per-minute',
  'reserved-tokens',
])

export class MirrorRules {
  readonly #rules: Composite
  readonly #latency: Latency
  readonly #endingsMatter: boolean
  readonly #scarce: 'places' | 'output' | 'requests'
  readonly initial: Mirror

  constructor({ rules, states, latency, seed }: MirrorOptions) {
    const certain = rules.filter(({ rule }) => rule !== 'overload')
    this.#rules = allOf(certain.map((spec) => makeRule(spec, states ?? undefined)))
    this.#latency = latency
    this.#endingsMatter = certain.some(
      (spec) => endingsMatterTo.has(spec.rule) || ('chargedAt' in spec && spec.chargedAt === 'completion'),
    )
    const has = (name: string): boolean => certain.some(({ rule }) => rule === name)
    this.#scarce = has('concurrency') ? 'places' : has('output-tokens-per-minute') ? 'output' : 'requests'
    this.initial = { state: this.#rules.initial(seed), flights: [] }
  }

  /** Ends the calls that end by `atMs`. */
  advance(mirror: Mirror, atMs: number): Mirror {
    let { state } = mirror
    let ended = 0
    for (const flight of mirror.flights) {
      if (flight.endsAtMs > atMs) break
      state = this.#ended(state, flight)
      ended += 1
    }
    return ended === 0 ? mirror : { state, flights: mirror.flights.slice(ended) }
  }

  /**
   * The provider after accepting the call; null when it would refuse the call. `mirror` has been advanced to
   * `atMs`.
   */
  accept(mirror: Mirror, load: Load, atMs: number): Mirror | null {
    const answer = this.#rules.check(mirror.state, {
      atMs: Math.floor(atMs),
      inputTokens: load.inputTokens,
      maxOutputTokens: null,
    })
    if (!answer.accepted) return null
    if (!this.#endingsMatter) return { state: answer.state, flights: mirror.flights }
    const flight = { ...load, endsAtMs: this.endsAtMs(load, atMs) }
    const place = mirror.flights.findIndex(({ endsAtMs }) => endsAtMs > flight.endsAtMs)
    const flights = place < 0 ? [...mirror.flights, flight] : mirror.flights.toSpliced(place, 0, flight)
    return { state: answer.state, flights }
  }

  /**
   * First time from `atMs` at which the call would be accepted if no other call were sent; null when never.
   */
  acceptsAtMs(mirror: Mirror, load: Load, atMs: number): number | null {
    let { state } = mirror
    let fromMs = Math.ceil(atMs)
    for (const flight of mirror.flights) {
      const acceptsAt = this.#acceptsAtMs(state, load, fromMs)
      if (acceptsAt !== null && acceptsAt < flight.endsAtMs) return acceptsAt
      state = this.#ended(state, flight)
      fromMs = Math.max(fromMs, Math.ceil(flight.endsAtMs))
    }
    return this.#acceptsAtMs(state, load, fromMs)
  }

  /**
   * A call's value when input tokens are not the scarce resource: its input tokens per unit of the scarce
   * one.
   */
  worthOf(load: Load): number {
    if (this.#scarce === 'places') return load.inputTokens / Math.max(1, this.endsAtMs(load, 0))
    return this.#scarce === 'output' ? load.inputTokens / (1 + load.outputTokens) : load.inputTokens
  }

  /** Input tokens that one call could have now. */
  roomTokens(mirror: Mirror, atMs: number): number {
    return this.#rules.ceiling(mirror.state, Math.floor(atMs))
  }

  endsAtMs(load: Load, atMs: number): number {
    return Math.floor(atMs) + this.#latency.firstTokenMs + this.#latency.perOutputTokenMs * load.outputTokens
  }

  #acceptsAtMs(state: CompositeState, load: Load, atMs: number): number | null {
    return this.#rules.acceptsAtMs(state, {
      atMs,
      inputTokens: load.inputTokens,
      maxOutputTokens: null,
    })
  }

  #ended(state: CompositeState, { endsAtMs, inputTokens, outputTokens }: Flight): CompositeState {
    return this.#rules.complete(state, {
      atMs: Math.floor(endsAtMs),
      inputTokens,
      actualInputTokens: inputTokens,
      outputTokens,
      maxOutputTokens: null,
      failed: false,
    })
  }
}
