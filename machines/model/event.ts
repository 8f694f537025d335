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
 * What the owner of a dispatch does where its call goes back to its place. `sends`: it waits on and
 * sends as soon as it holds the next permit, so the next grant is the dispatch. `away`: it is granted
 * nothing until it asks again. `left`: nobody wants the call any more, so it ends instead.
 */
export type OwnerStance = 'sends' | 'away' | 'left'

/**
 * How a dispatch came to its end, where the outcome alone does not tell: the answer ended without its
 * own end; its client stopped reading it; the request never left this machine.
 */
export type SettlementCause = 'truncated' | 'stalled-client' | 'never-sent'

/** Facts that a scope is told. `at` is epoch milliseconds, stamped by the host. */
export type ScopeEvent =
  | {
      readonly type: 'call.submitted'
      readonly at: number
      readonly call: Call
      /** Its owner sends as soon as it holds the permit: the grant is its dispatch, and no `call.dispatched` follows. */
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
      /** What the provider said; always there for `throttled`. */
      readonly evidence?: Evidence
      /** Left out: its owner waits on, and says when it sends. */
      readonly owner?: OwnerStance
      /** What the edge knows of how it came to this; the core decides nothing by it. */
      readonly cause?: SettlementCause
      /** Said of a permit that was settled before, while the next one of its call is out: it is counted, and changes nothing. */
      readonly late?: boolean
    }
  /** Let a waiting call through as if a primary depended on it. */
  | { readonly type: 'call.promoted'; readonly at: number; readonly callId: string }
  /** The owner of a recovered call asked for it again. */
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
   * The host takes no more calls and has released their owners, so whatever is granted from now on is
   * sent by nobody. `unused` names calls whose permits were granted and not handed over.
   */
  | { readonly type: 'host.closing'; readonly at: number; readonly unused: ReadonlyArray<string> }
  /** Part of the history could not be read: nobody knows what became of these calls. */
  | { readonly type: 'history.lost'; readonly at: number; readonly calls: ReadonlyArray<string> }
  /** The host that knew what became of dispatched calls is gone. */
  | { readonly type: 'host.recovered'; readonly at: number }

export type ScopeEventType = ScopeEvent['type']
