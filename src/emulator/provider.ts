import { type LogEntry, makeRequestLog, type RequestLog, type Totals } from './request-log.ts'
import { allOf, type Composite, type CompositeState } from './rules/composite.ts'
import { overloadedRefusal } from './rules/overload.ts'
import { dayMs, type LimitFact, type Refusal, type Statement } from './rules/rule.ts'
import { decodeRules, makeRule, type RuleSpec } from './rules/spec.ts'
import { spendCapRefusal } from './rules/spend-cap.ts'

/** How long an accepted call takes. */
export interface Latency {
  /** From acceptance to the first output token, ms, >= 0. */
  readonly firstTokenMs: number
  /** Per output token after that, ms, >= 0. */
  readonly perOutputTokenMs: number
}

export interface ProviderOptions {
  /** Asked in this order; an answer names the first rule that refuses. */
  readonly rules: readonly RuleSpec[]
  /**
   * The detail of refusals for rules that state none of their own; without it each rule has its own default.
   */
  readonly states?: Statement
  readonly latency: Latency
  /** Seed of every random draw, a whole number. */
  readonly seed: number
  /** Entries that the log keeps, default 10,000. */
  readonly logLimit?: number
}

export interface ProviderCall {
  /** Provider time, ms; fractions are dropped. A time earlier than one seen before counts as that one. */
  readonly atMs: number
  /** The caller's id. An id that is accepted twice belongs to a call that was dispatched twice. */
  readonly callId: string
  /** The provider's own name for the request; `req_emulator_<dispatch>` by default. */
  readonly requestId?: string
  readonly lane?: string
  /** A whole number, >= 0. */
  readonly inputTokens: number
  /** Length of the answer, tokens; a whole number, >= 0. */
  readonly outputTokens: number
  /** The caller's limit on the answer (`max_tokens`), tokens; left out when it states none. */
  readonly maxOutputTokens?: number
}

export interface Accepted {
  readonly accepted: true
  /** Names this dispatch to `finish` and `cancel`. */
  readonly dispatch: number
  readonly requestId: string
  readonly atMs: number
  readonly firstTokenAtMs: number
  readonly endsAtMs: number
}

export interface Refused {
  readonly accepted: false
  readonly requestId: string
  readonly refusal: Refusal
}

export interface Ending {
  readonly dispatch: number
  readonly atMs: number
  /** Tokens produced until then; by default the whole answer for `finish`, none for `cancel`. */
  readonly outputTokens?: number
  /** The call's actual input tokens; by default those charged. */
  readonly inputTokens?: number
  /** It ended in an error instead of an answer. Default false. */
  readonly failed?: boolean
}

/** A provider on a given clock. Synchronous; every method is O(1) in the calls made so far, amortized. */
export interface Provider {
  readonly latency: Latency
  begin(call: ProviderCall): Accepted | Refused
  /**
   * Ends a complete answer. Returns false, and does nothing, for a dispatch that has ended or never existed.
   */
  finish(ending: Ending): boolean
  /** The caller went away or the provider broke off. Input stays charged. False as in `finish`. */
  cancel(ending: Ending): boolean
  /** Refuses a call on purpose, for fault tests; charges nothing. */
  refuse(call: ProviderCall, fault: 'overloaded' | 'spend-cap'): Refused
  /** The limits that response headers show now. */
  headers(atMs: number): readonly LimitFact[]
  /** Input tokens that one call could have now; Infinity when no rule bounds them, 0 when closed. */
  ceiling(atMs: number): number
  /** First time at which the call would be accepted if nothing else arrived or ended; null when never. For oracles. */
  acceptsAtMs(call: ProviderCall): number | null
  inFlight(): number
  /** The newest entries, oldest first. */
  log(): readonly LogEntry[]
  totals(): Totals
}

/** Throws `InvalidRules`, and `RangeError` for an impossible latency or seed. */
export const makeProvider = (options: ProviderOptions): Provider => {
  const rules = allOf(decodeRules(options.rules).map((spec) => makeRule(spec, options.states)))
  for (const [name, ms] of Object.entries(options.latency)) {
    if (!(ms >= 0 && ms <= dayMs)) {
      throw new RangeError(`latency.${name} must be a number in [0, ${dayMs}], got ${ms}`)
    }
  }
  if (!Number.isSafeInteger(options.seed)) {
    throw new RangeError(`seed must be a whole number, got ${options.seed}`)
  }
  const log = makeRequestLog(options.logLimit ?? 10_000)
  return new LimitedProvider(rules, options.latency, options.seed, log)
}

class LimitedProvider implements Provider {
  readonly latency: Latency
  readonly #rules: Composite
  readonly #log: RequestLog
  readonly #flights = new Map<number, ProviderCall>()
  #states: CompositeState
  #nowMs = 0
  #dispatches = 0

  constructor(rules: Composite, latency: Latency, seed: number, log: RequestLog) {
    this.latency = latency
    this.#rules = rules
    this.#log = log
    this.#states = rules.initial(seed)
  }

  begin(call: ProviderCall): Accepted | Refused {
    checkCount('inputTokens', call.inputTokens)
    checkCount('outputTokens', call.outputTokens)
    checkCount('maxOutputTokens', call.maxOutputTokens ?? 0)
    const atMs = this.#at(call.atMs)
    const answer = this.#rules.check(this.#states, limitCall(call, atMs))
    this.#states = answer.state
    if (!answer.accepted) return this.#refused(call, atMs, answer.refusal)
    const dispatch = ++this.#dispatches
    this.#flights.set(dispatch, call)
    this.#log.add({ at: atMs, kind: 'accepted', ...described(call) })
    const firstTokenAtMs = atMs + this.latency.firstTokenMs
    return {
      accepted: true,
      dispatch,
      requestId: call.requestId ?? requestIdOf(dispatch),
      atMs,
      firstTokenAtMs,
      endsAtMs: firstTokenAtMs + this.latency.perOutputTokenMs * call.outputTokens,
    }
  }

  finish(ending: Ending): boolean {
    return this.#end(ending, 'completed')
  }

  cancel(ending: Ending): boolean {
    return this.#end(ending, 'aborted')
  }

  refuse(call: ProviderCall, fault: 'overloaded' | 'spend-cap'): Refused {
    const refusal = fault === 'overloaded' ? overloadedRefusal : spendCapRefusal
    return this.#refused(call, this.#at(call.atMs), refusal)
  }

  headers(atMs: number): readonly LimitFact[] {
    return this.#rules.headers(this.#states, this.#seen(atMs))
  }

  ceiling(atMs: number): number {
    return this.#rules.ceiling(this.#states, this.#seen(atMs))
  }

  acceptsAtMs(call: ProviderCall): number | null {
    return this.#rules.acceptsAtMs(this.#states, limitCall(call, this.#seen(call.atMs)))
  }

  inFlight(): number {
    return this.#flights.size
  }

  log(): readonly LogEntry[] {
    return this.#log.entries()
  }

  totals(): Totals {
    return this.#log.totals()
  }

  #refused(call: ProviderCall, atMs: number, refusal: Refusal): Refused {
    const dispatch = ++this.#dispatches
    this.#log.add({
      at: atMs,
      kind: 'refused',
      ...described(call),
      rule: refusal.rule,
      refusalKind: refusal.kind,
    })
    return { accepted: false, requestId: call.requestId ?? requestIdOf(dispatch), refusal }
  }

  #end(ending: Ending, kind: 'completed' | 'aborted'): boolean {
    checkCount('inputTokens', ending.inputTokens ?? 0)
    checkCount('outputTokens', ending.outputTokens ?? 0)
    const call = this.#flights.get(ending.dispatch)
    if (call === undefined) return false
    const atMs = this.#at(ending.atMs)
    this.#flights.delete(ending.dispatch)
    const outputTokens = ending.outputTokens ?? (kind === 'completed' ? call.outputTokens : 0)
    this.#states = this.#rules.complete(this.#states, {
      atMs,
      inputTokens: call.inputTokens,
      actualInputTokens: ending.inputTokens ?? call.inputTokens,
      outputTokens,
      maxOutputTokens: call.maxOutputTokens ?? null,
      failed: ending.failed ?? false,
    })
    this.#log.add({ at: atMs, kind, ...described(call), outputTokens })
    return true
  }

  #at(atMs: number): number {
    this.#nowMs = this.#seen(atMs)
    return this.#nowMs
  }

  /** Rules rely on whole milliseconds that never go back; a real clock may be set back. */
  #seen(atMs: number): number {
    if (!Number.isFinite(atMs)) throw new RangeError(`atMs must be a finite number, got ${atMs}`)
    return Math.max(this.#nowMs, Math.floor(atMs))
  }
}

/** A fraction or a NaN would corrupt every later sum. */
const checkCount = (name: string, count: number): void => {
  if (!Number.isSafeInteger(count) || count < 0) {
    throw new RangeError(`${name} must be a whole number of at least 0, got ${count}`)
  }
}

const limitCall = (call: ProviderCall, atMs: number) => ({
  atMs,
  inputTokens: call.inputTokens,
  maxOutputTokens: call.maxOutputTokens ?? null,
})

const described = (call: ProviderCall) =>
  call.lane === undefined
    ? { callId: call.callId, inputTokens: call.inputTokens }
    : { callId: call.callId, inputTokens: call.inputTokens, lane: call.lane }

const requestIdOf = (dispatch: number): string => `req_emulator_${dispatch}`
