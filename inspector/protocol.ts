/**
 * What travels from a host to a page: JSON frames of ids, names, counts, times, verdicts and
 * reasons (`projection.ts` copies every field by name). Pure: the page imports it as well.
 */
import type { Decision, ScopeEvent } from '../machines/index.ts'
import type { EncodedScope } from '../machines/snapshot/encoded.ts'
import type { ScopeFacts } from '../src/host/status.ts'
import type { Chart } from './chart.ts'

/** One journal entry: an event of one scope and what it decided. Its time is the event's. */
export interface EntryFrame {
  readonly scope: string
  /** Place in the journal. */
  readonly position: number
  readonly event: ScopeEvent
  readonly decisions: ReadonlyArray<Decision>
}

/** One scope in the overview: `statusAt` says how it stands at a moment. */
export interface ScopeRow {
  /** Of its newest entry; 0 before the first. */
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
      /** Its statechart; null when it is not a machine. */
      readonly chart: Chart | null
    }
  | {
      readonly kind: 'event'
      readonly at: number
      readonly sessionId: string
      /** Who sent it; null when it came from outside the system. */
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

/** What a page is sent while it listens. */
export type Frame =
  | {
      readonly kind: 'hello'
      /** False for a recorded file. */
      readonly live: boolean
      readonly actions: boolean
    }
  /** The host's clock, epoch milliseconds, now and then: a page reckons ages by it and not by its own. */
  | { readonly kind: 'clock'; readonly nowMs: number }
  | { readonly kind: 'entries'; readonly entries: ReadonlyArray<EntryFrame> }
  | { readonly kind: 'scopes'; readonly rows: ReadonlyArray<ScopeRow> }
  | { readonly kind: 'actors'; readonly actors: ReadonlyArray<ActorFrame> }
  /** This viewer was too slow for so many frames; the journal still has the entries among them. */
  | { readonly kind: 'dropped'; readonly count: number; readonly total: number }

/** Answer of `/api/scopes`. */
export interface ScopesAnswer {
  readonly live: boolean
  readonly actions: boolean
  /** Epoch milliseconds by the host's clock, or the moment that was asked for; of a file that nobody writes the time of its newest entry. */
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

/** Answer of `/api/state`: the scope as a replay up to `position` gives it. */
export interface StateAnswer {
  readonly scope: string
  readonly position: number
  readonly at: number
  /** Null when nothing of the scope had happened yet. */
  readonly snapshot: EncodedScope | null
}

/** Answer of `/api/history`: where to begin so that about `limit` entries of a scope follow. */
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
