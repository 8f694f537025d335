/**
 * Plays a script against one scope, without a host, a clock or a provider: the decisions are those of the
 * core. Time is virtual; everything that falls due between two steps happens.
 */
import {
  advance,
  contextFrom,
  type Decision,
  type Evidence,
  type Outcome,
  type PolicyInput,
  parsePolicy,
  type ScopeContext,
  type ScopeEvent,
  type Usage,
  wakeAt,
} from '../../machines/index.ts'
import { scopeStatus } from '../host/scope-facts.ts'
import type { Unstamped } from '../host/scope-record.ts'
import type { ScopeStatus } from '../host/status.ts'
import { buildCall, type TestCall } from './calls.ts'

/** One step of a script. `at`: milliseconds since the start, never less than in the step before. */
export type Step = { readonly at: number } & (
  | { readonly submit: TestCall }
  /** The provider began to answer the call. */
  | { readonly accept: string }
  | {
      readonly settle: string
      /** Default `completed`; `throttled` with evidence. */
      readonly outcome?: Outcome
      readonly usage?: Usage
      readonly evidence?: Evidence
    }
  | { readonly withdraw: string }
  /** Any other event of the core. */
  | { readonly event: Unstamped<ScopeEvent> }
  /** Time passes. */
  | { readonly pass: true }
)

export interface PlayOptions {
  /** The scope goes on from here: a snapshot, or a scope of a recorded journal. Default: a new scope. */
  readonly from?: ScopeContext
  /** Name of a new scope. Default `test/key/model`. */
  readonly scope?: string
}

/** A script that was played. */
export interface Played {
  /** In the order in which they were made. `at` is epoch milliseconds. */
  readonly decisions: ReadonlyArray<Decision>
  /** The state of the scope at the end. */
  readonly context: ScopeContext
  readonly status: ScopeStatus
  /** The decisions about one call. */
  readonly decisionsOf: (callId: string) => ReadonlyArray<Decision>
  /** Milliseconds from the start to the first grant of the call; null when it got none. */
  readonly grantedAt: (callId: string) => number | null
}

/** Start of a new scope: any moment will do, as long as it is the same in every run. */
const epochMs = 1_700_000_000_000
/** A scope that wakes more often between two steps has a fault that a test should see. */
const mostWakes = 100_000

/**
 * Plays `script` under `policy`; null keeps the policy of the scope that it goes on from. Throws
 * `InvalidInput` for a policy, call or event out of its range, and RangeError for a step back in time.
 */
export const play = (
  policy: PolicyInput | null,
  script: ReadonlyArray<Step>,
  { from, scope = 'test/key/model' }: PlayOptions = {},
): Played => {
  const startMs = from?.at ?? epochMs
  let context = from ?? contextFrom(scope)
  const decisions: Decision[] = []
  const tell = (event: ScopeEvent): void => {
    context = advance(context, event)
    decisions.push(...context.decisions)
  }
  const passTo = (atMs: number): void => {
    for (let wakes = 0; wakes < mostWakes; wakes += 1) {
      const due = wakeAt(context)
      if (due === null || due > atMs) return
      tell({ type: 'clock.woke', at: Math.max(due, context.at) })
    }
    throw new Error(`the scope woke ${mostWakes} times before ${atMs - startMs} ms`)
  }
  if (policy !== null) tell({ type: 'policy.changed', at: startMs, policy: parsePolicy(policy) })
  let lastAt = 0
  for (const step of script) {
    if (!(step.at >= lastAt)) throw new RangeError(`step.at must be at least ${lastAt}, got ${step.at}`)
    lastAt = step.at
    passTo(startMs + step.at)
    const fact = factOf(step)
    if (fact !== null) tell({ ...fact, at: startMs + step.at } as ScopeEvent)
  }
  const decisionsOf = (callId: string) => decisions.filter((decision) => decision.callId === callId)
  return {
    decisions,
    context,
    status: scopeStatus(context, startMs + lastAt),
    decisionsOf,
    grantedAt: (callId) => {
      const grant = decisionsOf(callId).find(({ verdict }) => verdict === 'admit' || verdict === 'release')
      return grant === undefined ? null : grant.at - startMs
    },
  }
}

const factOf = (step: Step): Unstamped<ScopeEvent> | null => {
  if ('submit' in step) return { type: 'call.submitted', call: buildCall(step.submit), dispatchAtOnce: true }
  if ('accept' in step) return { type: 'call.accepted', callId: step.accept }
  if ('withdraw' in step) return { type: 'call.withdrawn', callId: step.withdraw }
  if ('event' in step) return step.event
  if (!('settle' in step)) return null
  const { settle: callId, outcome = 'completed', usage, evidence } = step
  return {
    type: 'call.settled',
    callId,
    outcome,
    ...(usage === undefined ? {} : { usage }),
    ...(evidence === undefined ? {} : { evidence, owner: 'sends' }),
  }
}
