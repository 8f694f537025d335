/**
 * The messages from a host to a page: JSON frames of ids, names, counts, times, verdicts and reasons
 * (`projection.ts` copies every field by name). Pure: the page imports it as well.
 */
import type { Decision, ScopeEvent } from '../machines/index.ts'
import type { EncodedScope } from '../machines/snapshot/encoded.ts'
import type { ScopeFacts } from '../src/host/status.ts'
import type { Chart } from './chart.ts'

/** One journal entry: an event of one scope and its decisions. Its time is the event's. */
export interface EntryFrame {
  readonly scope: string
  /** Place in the journal. */
  readonly position: number
  readonly event: ScopeEvent
  readonly decisions: ReadonlyArray<Decision>
}

/** One scope in the overview: `statusAt` gives its status at a moment. */
export interface ScopeRow {
  /** Position of the scope's newest entry; 0 before the first. */
  readonly position: number
  readonly facts: ScopeFacts
}

/** One step of any XState 5 actor that streams in. Names and ids; never a context, an event's payload or an output. */
export type ActorFrame =
  | {
      readonly kind: 'actor'
      readonly at: number
      readonly sessionId: string
      readonly parentId: string | null
      readonly name: string
      readonly status: string
      readonly value: StateValue | null
      /** The actor's statechart; null when it is not a machine. */
      readonly chart: Chart | null
    }
  | {
      readonly kind: 'event'
      readonly at: number
      readonly sessionId: string
      /** The sender's id; null when the event came from outside the system. */
      readonly sourceId: string | null
      readonly eventType: string
    }
  | {
      readonly kind: 'snapshot'
      readonly at: number
      readonly sessionId: string
      readonly status: string
      readonly value: StateValue | null
      readonly eventType: string
    }

export type StateValue = string | { readonly [key: string]: StateValue }

/** The frames that a page gets while it listens. */
export type Frame =
  | {
      readonly kind: 'hello'
      /** False for a recorded file. */
      readonly live: boolean
      readonly actions: boolean
      /**
       * Names this run of the host and its journal. Another name after a reconnection: nothing that was shown
       * before is known to hold.
       */
      readonly host: string
    }
  /**
   * The host's clock, epoch milliseconds, sent at intervals. The page computes ages by it, not by its own
   * clock.
   */
  | { readonly kind: 'clock'; readonly nowMs: number }
  | { readonly kind: 'entries'; readonly entries: ReadonlyArray<EntryFrame> }
  | { readonly kind: 'scopes'; readonly rows: ReadonlyArray<ScopeRow> }
  | { readonly kind: 'actors'; readonly actors: ReadonlyArray<ActorFrame> }
  /** This viewer was too slow and lost `count` frames; the journal still has the entries among them. */
  | { readonly kind: 'dropped'; readonly count: number; readonly total: number }

/** Answer of `/api/scopes`. */
export interface ScopesAnswer {
  readonly live: boolean
  readonly actions: boolean
  /**
   * Epoch milliseconds: the host's clock, or the requested moment. For a file without a writer: the time of
   * its newest entry.
   */
  readonly now: number
  readonly scopes: ReadonlyArray<ScopeRow>
}

/** Answer of `/api/entries`. */
export interface EntriesAnswer {
  readonly entries: ReadonlyArray<EntryFrame>
  /** Ask again after this position. */
  readonly through: number
  readonly done: boolean
}

/** Answer of `/api/state`: the scope after a replay up to `position`. */
export interface StateAnswer {
  readonly scope: string
  readonly position: number
  readonly at: number
  /** Null before the first entry of the scope. */
  readonly snapshot: EncodedScope | null
}

/** Answer of `/api/history`: a base after which about `limit` entries of a scope follow. */
export interface HistoryAnswer {
  readonly base: StateAnswer
  /** Entries of the scope before `base` that the journal still has. */
  readonly earlier: number
  /** Entries of the scope after `base`. */
  readonly later: number
}

/** Answer of `/api/explain`. */
export interface ExplainAnswer {
  readonly callId: string
  readonly scope: string
  readonly standing: 'waiting' | 'in flight' | 'ended'
  readonly lines: ReadonlyArray<string>
}
