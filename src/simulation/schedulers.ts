/** Schedulers to compare: our scope actor, and clients without one. */
import { createActor } from 'xstate'
import {
  type Decision,
  type Evidence,
  type PolicyInput,
  parsePolicy,
  providerScope,
  type ScopeContext,
  type ScopeEvent,
  wakeAt,
} from '../../machines/index.ts'
import type { VisibleRefusal } from './answers.ts'
import { estimateOf, type Scheduler, type SimulatedCall, type World } from './world.ts'

/** The evidence of a refusal, as `src/evidence` would read it from the wire. */
export const evidenceOfRefusal = ({
  kind,
  retryAfterMs,
  permanent,
  currentLimit,
  nextLimit,
}: VisibleRefusal): Evidence => ({
  kind,
  scope: kind === 'quota-exhausted' ? 'credential' : 'model',
  retryAfterMs,
  retryable: !permanent,
  facts: {
    ...(currentLimit === undefined ? {} : { currentLimit }),
    ...(nextLimit === undefined ? {} : { nextLimit }),
  },
})

export interface LaneScheduler extends Scheduler {
  readonly context: () => ScopeContext
  readonly tell: (event: ScopeEvent) => void
}

export type LaneObserver = (
  event: ScopeEvent,
  decisions: ReadonlyArray<Decision>,
  after: ScopeContext,
) => void

/** Our scope actor on virtual time, without a journal. `observe` sees every event with its decisions. */
export const laneScheduler = (
  world: World,
  policy: PolicyInput,
  observe: LaneObserver = () => {},
): LaneScheduler => {
  const { timeline } = world
  const calls = new Map<string, SimulatedCall>()
  const aborts = new Map<string, () => void>()
  const actor = createActor(providerScope, { input: { scope: 'simulated' } })
  const context = () => actor.getSnapshot().context.scope
  let armedAtMs = Number.POSITIVE_INFINITY

  const tell = (event: ScopeEvent): void => {
    actor.send(event)
    const { decisions } = context()
    observe(event, decisions, context())
    for (const decision of decisions) carryOut(decision)
    arm()
  }

  const arm = (): void => {
    const next = wakeAt(context())
    if (next === null || next >= armedAtMs) return
    armedAtMs = next
    timeline.at(next, () => {
      if (armedAtMs !== next) return
      armedAtMs = Number.POSITIVE_INFINITY
      const due = wakeAt(context())
      if (due !== null && due <= timeline.now()) tell({ type: 'clock.woke', at: timeline.now() })
      else arm()
    })
  }

  const carryOut = ({ verdict, callId }: Decision): void => {
    if (verdict === 'admit' || verdict === 'release') return dispatch(calls.get(callId)!)
    if (verdict === 'cancel') {
      aborts.get(callId)?.()
      return tell({ type: 'call.settled', at: timeline.now(), callId, outcome: 'cancelled' })
    }
    if (verdict === 'reject' || verdict === 'expire') {
      aborts.get(callId)?.()
      world.end(callId, true)
    }
  }

  const dispatch = (call: SimulatedCall): void => {
    const callId = call.id
    const now = () => timeline.now()
    tell({ type: 'call.dispatched', at: now(), callId })
    const abort = world.dispatch(call, {
      accepted: (limits) => {
        tell({ type: 'call.accepted', at: now(), callId })
        if (limits.length > 0) tell({ type: 'provider.evidence', at: now(), limits })
      },
      refused: (refusal) => {
        aborts.delete(callId)
        tell({
          type: 'call.settled',
          at: now(),
          callId,
          outcome: 'throttled',
          evidence: evidenceOfRefusal(refusal),
        })
      },
      completed: () => {
        aborts.delete(callId)
        const usage = { inputTokens: call.inputTokens, outputTokens: call.outputTokens }
        tell({ type: 'call.settled', at: now(), callId, outcome: 'completed', usage })
      },
    })
    aborts.set(callId, abort)
  }

  actor.start()
  tell({ type: 'policy.changed', at: timeline.now(), policy: parsePolicy(policy) })
  return {
    context,
    tell,
    submit: (call) => {
      calls.set(call.id, call)
      const at = timeline.now()
      tell({
        type: 'call.submitted',
        at,
        call: {
          id: call.id,
          lane: call.lane,
          priorityClass: call.priorityClass,
          principal: call.principal,
          inputTokens: estimateOf(call),
          outputTokens: call.outputTokens,
          turnId: null,
          deadlineAt: call.deadlineMs === undefined ? null : at + call.deadlineMs,
          dependsOn: [],
          parentId: null,
        },
      })
    },
  }
}

export interface RetryBounds {
  /** Retries after the first attempt before the client gives up. Infinity for a client that never does. */
  readonly retries: number
  readonly baseMs: number
  readonly maxMs: number
  /** A longer stated wait is ignored. Infinity for a client that obeys every wait. */
  readonly mostStatedMs: number
}

/**
 * The official SDKs as shipped: 2 retries, 0.5 s doubling to 8 s, jitter removes up to a quarter. A stated
 * wait is obeyed unless it is longer than a minute.
 */
export const sdkRetries: RetryBounds = { retries: 2, baseMs: 500, maxMs: 8_000, mostStatedMs: 60_000 }

/** The wait that such a client obeys, ms; null for its own backoff. */
export const obeyedMs = (statedMs: number | null, { mostStatedMs }: RetryBounds): number | null =>
  statedMs !== null && statedMs <= mostStatedMs ? statedMs : null

/**
 * Clients without coordination: each sends at once and backs off when refused. `random` gives numbers in [0,
 * 1).
 */
export const retryingClients = (world: World, bounds: RetryBounds, random: () => number): Scheduler => {
  const attempt = (call: SimulatedCall, retries: number): void => {
    world.dispatch(call, {
      accepted: () => {},
      completed: () => {},
      refused: ({ retryAfterMs, permanent }) => {
        if (permanent || retries >= bounds.retries) return world.end(call.id, true)
        const backoffMs =
          Math.min(bounds.baseMs * 2 ** Math.min(retries, 30), bounds.maxMs) * (1 - 0.25 * random())
        world.timeline.after(obeyedMs(retryAfterMs, bounds) ?? backoffMs, () => attempt(call, retries + 1))
      },
    })
  }
  return { submit: (call) => attempt(call, 0) }
}
