/** Random histories of a scope whose timeouts are near, event by event, from a seed. */
import { HashMap } from 'effect'
import {
  advance,
  contextFrom,
  type Decision,
  type PolicyInput,
  parsePolicy,
  priorityClasses,
  type ScopeContext,
  type ScopeEvent,
  wakeAt,
} from '../../machines/index.ts'
import { type Draw, drawFrom } from '../../src/simulation/soak/draw.ts'

const startMs = 1_000_000

export const nearPolicy = (draw: Draw): PolicyInput => ({
  capacity: draw.whole(1, 6),
  inFlight: draw.of(['settle', 'cancel', 'tolerate']),
  patienceMs: draw.of([0, 500, 3_000]),
  graceMs: draw.of([0, 500]),
  quietWindowMs: draw.of([0, 1_000]),
  hold: draw.of(['whileWaiting', 'untilAccepted', 'untilSettled']),
  strategy: draw.of(['adaptive', 'quiet', 'backfill']),
  quantumTokens: draw.of([1, 10_000]),
  drainIntervalMs: draw.of([0, 300]),
  maxDeferralMs: draw.of([100, 4_000]),
  lingerMs: draw.of([0, 700]),
  primaryPendingTimeoutMs: draw.of([1_500, 60_000]),
  primaryActiveTimeoutMs: draw.of([1_000, 5_000]),
  auxiliaryPendingTimeoutMs: draw.of([2_000, 60_000]),
  auxiliaryActiveTimeoutMs: draw.of([1_000, 5_000]),
  turnTimeoutMs: 3_000,
  pacingBaseMs: 50,
  pacingMaxMs: 400,
  quotaHoldMs: 800,
  unclaimedExpiryMs: draw.of([500, 5_000]),
  settledRetention: draw.of([0, 4, 64]),
  maxAttempts: draw.of([1, 3, 60]),
  ...(draw.odds(0.3) ? { limits: { inputTokensPerMinute: 30_000, requestsPerMinute: 120 } } : {}),
  ...(draw.odds(0.3) ? { principalQuota: draw.whole(1, 3), weights: { a: 2 } } : {}),
  ...(draw.odds(0.25) ? { qos: {} } : {}),
})

/** One scope that is told of made-up facts; each step answers the event that came. */
export class History {
  context: ScopeContext = contextFrom('scope')
  readonly #draw: Draw
  #at = startMs
  #made = 0
  readonly #change: PolicyInput

  /** `change` replaces fields of every policy that is drawn. */
  constructor(seed: number, change: PolicyInput = {}) {
    this.#draw = drawFrom(seed, 'history')
    this.#change = change
    this.tell({
      type: 'policy.changed',
      at: this.#at,
      policy: parsePolicy({ ...nearPolicy(this.#draw), ...change }),
    })
  }

  tell(event: ScopeEvent): ReadonlyArray<Decision> {
    this.context = advance(this.context, event)
    return this.context.decisions
  }

  /** The next event of the history, not told yet. */
  next(): ScopeEvent {
    const draw = this.#draw
    this.#pass()
    const at = this.#at
    const what = draw.chance()
    if (what < 0.34) return this.#submission()
    const flight = this.#anyOf([...HashMap.keys(this.context.inFlight)])
    const waiting = this.#anyOf([...HashMap.keys(this.context.waiting)])
    if (what < 0.44 && flight !== null) return { type: 'call.dispatched', at, callId: flight }
    if (what < 0.5 && flight !== null) return { type: 'call.accepted', at, callId: flight }
    if (what < 0.72 && flight !== null) return this.#settlement(flight)
    if (what < 0.76 && waiting !== null) return { type: 'call.withdrawn', at, callId: waiting }
    if (what < 0.78 && waiting !== null) return { type: 'call.promoted', at, callId: waiting }
    if (what < 0.8)
      return {
        type: 'turn.began',
        at,
        turnId: `t${draw.whole(0, 2)}`,
        betweenRounds: draw.of(['hold', 'yield']),
      }
    if (what < 0.82) return { type: 'turn.ended', at, turnId: `t${draw.whole(0, 2)}` }
    if (what < 0.83) return { type: 'host.recovered', at }
    if (what < 0.84) return { type: 'foreground.changed', at, active: draw.odds(0.4) }
    if (what < 0.85) return { type: 'wait.released', at }
    if (what < 0.855)
      return { type: 'policy.changed', at, policy: parsePolicy({ ...nearPolicy(draw), ...this.#change }) }
    return { type: 'clock.woke', at }
  }

  /** Many facts share their millisecond; some come exactly when the scope is to be woken. */
  #pass(): void {
    const draw = this.#draw
    const how = draw.chance()
    if (how < 0.45) return
    const due = wakeAt(this.context)
    if (how < 0.7 && due !== null) this.#at = Math.max(this.#at, due)
    else this.#at += draw.whole(1, how < 0.95 ? 300 : 8_000)
  }

  #anyOf(ids: ReadonlyArray<string>): string | null {
    return ids.length === 0 ? null : [...ids].sort()[this.#draw.whole(0, ids.length - 1)]!
  }

  #submission(): ScopeEvent {
    const draw = this.#draw
    const again = draw.odds(0.1) ? this.#anyOf([...HashMap.keys(this.context.waiting)]) : null
    const id = again ?? `c${draw.odds(0.03) ? draw.whole(0, this.#made) : this.#made++}`
    const lane = draw.of(['primary', 'auxiliary', 'auxiliary'] as const)
    const parentId = draw.odds(0.08) ? this.#anyOf([...HashMap.keys(this.context.inFlight)]) : null
    const call = {
      id,
      turnId: draw.odds(0.15) ? `t${draw.whole(0, 2)}` : null,
      lane,
      priorityClass: lane === 'auxiliary' ? 'background_ingestion' : draw.of(priorityClasses.slice(0, 3)),
      principal: draw.of(['a', 'b', 'c']),
      inputTokens: draw.of([0, 100, 5_000, 40_000]),
      outputTokens: draw.of([0, 200]),
      deadlineAt: draw.odds(0.2) ? this.#at + draw.of([0, 400, 400, 3_000]) : null,
      dependsOn: lane === 'primary' && draw.odds(0.15) ? [`c${draw.whole(0, this.#made)}`] : [],
      parentId,
    } as const
    return { type: 'call.submitted', at: this.#at, call, ...(draw.odds(0.5) ? { dispatchAtOnce: true } : {}) }
  }

  #settlement(callId: string): ScopeEvent {
    const draw = this.#draw
    const at = this.#at
    if (draw.odds(0.6)) {
      const usage = draw.odds(0.5)
        ? { usage: { inputTokens: draw.of([0, 90, 4_000, 50_000]), outputTokens: 10 } }
        : {}
      return {
        type: 'call.settled',
        at,
        callId,
        outcome: draw.of(['completed', 'completed', 'failed', 'cancelled']),
        ...usage,
      }
    }
    const evidence = {
      kind: draw.of([
        'overloaded',
        'acceleration',
        'input-tokens-per-minute',
        'concurrency',
        'quota-exhausted',
      ] as const),
      scope: 'model' as const,
      retryAfterMs: draw.of([null, null, 0, 250, 2_000]),
      retryable: draw.odds(0.9),
      facts: draw.odds(0.3) ? { currentLimit: 20_000 } : {},
    }
    return { type: 'call.settled', at, callId, outcome: 'throttled', evidence }
  }
}
