/** The two sources of the inspector: a running host, or a recorded file. */
import { HashMap, Option } from 'effect'
import { parsePolicy } from '../machines/index.ts'
import { explainCall } from '../src/host/explain.ts'
import type { LaneHost } from '../src/host/host.ts'
import { kernelOf } from '../src/host/internal.ts'
import { scopeFacts } from '../src/host/scope-facts.ts'
import { openSqliteReader } from '../src/journal/reader.ts'
import { History } from './history.ts'
import type { EntryFrame, ExplainAnswer, ScopeRow } from './protocol.ts'

/** The actions of an operator, where they are allowed. Each returns whether the scope is known. */
export interface Actions {
  /** Ends the waits that a provider imposed on the scope. */
  readonly releaseWait: (scope: string) => boolean
  /** Replaces some fields of the policy. Throws `InvalidInput`. */
  readonly changePolicy: (scope: string, changes: object) => boolean
  /**
   * Lets a waiting auxiliary through as if a primary depended on it. `not-waiting`: no such call waits in the
   * scope, so nothing was done.
   */
  readonly promote: (scope: string, callId: string) => boolean | 'not-waiting'
}

export interface InspectorSource {
  readonly live: boolean
  readonly history: History
  /** The host's time, epoch milliseconds. For a file without a writer: the time of its newest entry. */
  readonly now: () => number
  /** The present rows; of all scopes when none are named. */
  readonly rows: (scopes?: ReadonlySet<string>) => Promise<ReadonlyArray<ScopeRow>>
  /** The present rows without waiting, where the source can give them: for the live feed. */
  readonly rowsNow: (scopes: ReadonlySet<string>) => ReadonlyArray<ScopeRow>
  /** Why a call waits now, or how it ended; null when no entry names it. */
  readonly explain: (callId: string) => Promise<ExplainAnswer | null>
  /** Reports every entry from now on. Returns a function that stops the reports. */
  readonly observe: (observer: (entry: EntryFrame) => void) => () => void
  readonly actions: Actions | null
  readonly close: () => void
}

/** A running host, in this process. */
export const hostSource = (host: LaneHost): InspectorSource => {
  const kernel = kernelOf(host)
  const rowsNow = (scopes?: ReadonlySet<string>): ReadonlyArray<ScopeRow> =>
    [...kernel.runners.values()]
      .filter(({ name }) => scopes === undefined || scopes.has(name))
      .map(({ context, position }) => ({ position, facts: scopeFacts(context) }))
  const runnerOf = (scope: string) => kernel.runners.get(scope)
  return {
    live: true,
    history: new History(kernel.journal, 'of this host'),
    now: () => kernel.clock.now(),
    rows: async (scopes) => rowsNow(scopes),
    rowsNow,
    explain: (callId) => explainCall(kernel, callId),
    observe: (observer) => kernel.observe(observer),
    actions: {
      releaseWait: (scope) => runnerOf(scope)?.tell({ type: 'wait.released' }) != null,
      promote: (scope, callId) => {
        const runner = runnerOf(scope)
        if (runner === undefined) return false
        const waiting = Option.getOrNull(HashMap.get(runner.context.waiting, callId))
        if (waiting?.call.lane !== 'auxiliary') return 'not-waiting'
        return runner.tell({ type: 'call.promoted', callId }) != null
      },
      changePolicy: (scope, changes) => {
        const runner = runnerOf(scope)
        if (runner === undefined) return false
        runner.changePolicy(parsePolicy(changes, runner.context.policy))
        return true
      },
    },
    close: () => {},
  }
}

/**
 * A journal file, also while a host writes it; never writes. Rejects as `openSqliteReader` does: with
 * `JournalTooNew`, `JournalCorrupt`, or `JournalUnavailable` when there is no journal at `path`.
 */
export const journalSource = async (path: string): Promise<InspectorSource> => {
  const reader = await openSqliteReader(path)
  const history = new History(reader, path)
  const now = () => (reader.isWritten() ? Date.now() : history.newestAt)
  return {
    live: false,
    history,
    now,
    rows: async (scopes) => {
      const rows = await history.rowsAt({ at: Number.MAX_SAFE_INTEGER })
      return scopes === undefined ? rows : rows.filter(({ facts }) => scopes.has(facts.scope))
    },
    rowsNow: () => [],
    explain: async (callId) => {
      await history.lastPosition()
      return history.explain(callId, { nowMs: now() })
    },
    observe: (observer) => tail(history, observer),
    actions: null,
    close: () => reader.close(),
  }
}

const tailEveryMs = 1_000
const tailBatch = 2_000

/** Another process may be writing the file, so new entries are looked for at intervals. */
const tail = (history: History, observer: (entry: EntryFrame) => void): (() => void) => {
  let after: number | null = null
  let busy = false
  const look = async (): Promise<void> => {
    after ??= await history.lastPosition()
    for (let done = false; !done; ) {
      const answer = await history.entries({ after, limit: tailBatch })
      for (const entry of answer.entries) observer(entry)
      after = answer.through
      done = answer.done
    }
  }
  const timer = setInterval(() => {
    if (busy) return
    busy = true
    // A reader that was closed meanwhile, or damage, shows in the page's own requests.
    look()
      .catch(() => {})
      .finally(() => {
        busy = false
      })
  }, tailEveryMs)
  timer.unref()
  return () => clearInterval(timer)
}
