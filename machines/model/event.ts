import type { Call, Usage } from './call.ts'
import type { Evidence, LimitReading } from './evidence.ts'
import type { Policy } from './policy.ts'

/**
 * How a dispatched call ended. `completed` teaches the budget, `throttled` shrinks it,
 * `abandoned` (its holder never answered an abort) and `unknown` (its host died) teach nothing.
 */
export type Outcome =
  | 'completed'
  | 'failed'
  | 'cancelled'
  | 'timedOut'
  | 'throttled'
  | 'abandoned'
  | 'unknown'

/**
 * The owner's plan when its call goes back to its place. `sends`: the owner waits, and sends
 * as soon as it holds the next permit, so the next grant is the dispatch. `away`: the call gets no grant
 * until its owner asks again. `left`: the owner no longer wants the call, so the call ends.
 */
export type OwnerStance = 'sends' | 'away' | 'left'

/**
 * How a dispatch came to its end, where the outcome alone does not tell: the answer ended without its
 * own end; its client stopped reading it; the request never left this machine.
 */
export type SettlementCause = 'truncated' | 'stalled-client' | 'never-sent'

/** The events of a scope. `at` is epoch milliseconds, stamped by the host. */
export type ScopeEvent =
  | {
      readonly type: 'call.submitted'
      readonly at: number
      readonly call: Call
      /**
       * The owner sends as soon as it holds the permit: the grant is the dispatch, and no `call.dispatched`
       * follows.
       */
      readonly dispatchAtOnce?: boolean
    }
  | { readonly type: 'call.withdrawn'; readonly at: number; readonly callId: string }
  /** Written before the request leaves, so that a restart can tell "not sent" from "unknown". */
  | { readonly type: 'call.dispatched'; readonly at: number; readonly callId: string }
  /** The provider began to answer: it has charged the input tokens. */
  | { readonly type: 'call.accepted'; readonly at: number; readonly callId: string }
  | {
      readonly type: 'call.settled'
      readonly at: number
      readonly callId: string
      readonly outcome: Outcome
      readonly usage?: Usage
      /** The provider's evidence; required for `throttled`. */
      readonly evidence?: Evidence
      /** When it is left out, the owner waits on, and reports its dispatch with `call.dispatched`. */
      readonly owner?: OwnerStance
      /** What the edge knows of how it came to this; the core decides nothing by it. */
      readonly cause?: SettlementCause
      /**
       * The permit was already settled and the call's next permit is out. The settlement is counted and
       * changes nothing.
       */
      readonly late?: boolean
    }
  /** Let a waiting call through as if a primary depended on it. */
  | { readonly type: 'call.promoted'; readonly at: number; readonly callId: string }
  /** The owner of a recovered call asked for the call again. */
  | { readonly type: 'call.claimed'; readonly at: number; readonly callId: string }
  /** Evidence from a sibling scope on the same credential or host, or limits read from headers. */
  | {
      readonly type: 'provider.evidence'
      readonly at: number
      readonly evidence?: Evidence
      readonly limits?: ReadonlyArray<LimitReading>
    }
  /** An operator ended the waits that a provider imposed. */
  | { readonly type: 'wait.released'; readonly at: number }
  | {
      readonly type: 'turn.began'
      readonly at: number
      readonly turnId: string
      readonly betweenRounds: 'hold' | 'yield'
    }
  | { readonly type: 'turn.ended'; readonly at: number; readonly turnId: string }
  | { readonly type: 'policy.changed'; readonly at: number; readonly policy: Policy }
  | { readonly type: 'foreground.changed'; readonly at: number; readonly active: boolean }
  | { readonly type: 'clock.woke'; readonly at: number }
  /**
   * The host takes no more calls and has released the owners of all waiting calls, so nobody sends a call
   * that is granted from now on. `unused` names calls whose permits were granted but not handed over.
   */
  | { readonly type: 'host.closing'; readonly at: number; readonly unused: ReadonlyArray<string> }
  /** Part of the history could not be read: nobody knows what became of these calls. */
  | { readonly type: 'history.lost'; readonly at: number; readonly calls: ReadonlyArray<string> }
  /** The host that knew the outcomes of the dispatched calls is gone. */
  | { readonly type: 'host.recovered'; readonly at: number }

export type ScopeEventType = ScopeEvent['type']
