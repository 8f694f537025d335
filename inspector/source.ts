/** What the inspector looks at: a host that runs, or a file that was recorded. */
import { parsePolicy } from '../machines/index.ts'
import { explainCall } from '../src/host/explain.ts'
import type { LaneHost } from '../src/host/host.ts'
import { kernelOf } from '../src/host/internal.ts'
import { scopeFacts } from '../src/host/scope-facts.ts'
import { openSqliteReader } from '../src/journal/reader.ts'
import { History } from './history.ts'
import type { EntryFrame, ExplainAnswer, ScopeRow } from './protocol.ts'

/** What an operator may do, when it is allowed. Each answers whether the scope is known. */
export interface Actions {
  /** Ends the waits that a provider imposed on the scope. */
  readonly releaseWait: (scope: string) => boolean
  /** Puts some fields of the policy in force. Throws `InvalidInput`. */
  readonly changePolicy: (scope: string, changes: object) => boolean
  /** Lets a waiting call through as if a primary depended on it. */
  readonly promote: (scope: string, callId: string) => boolean
}

export interface InspectorSource {
  readonly live: boolean
  readonly history: History
  /** The host's time, epoch milliseconds; of a file that nobody writes that of its newest entry. */
  readonly now: () => number
  /** Rows as they are now; of all scopes when none are named. */
  readonly rows: (scopes?: ReadonlySet<string>) => Promise<ReadonlyArray<ScopeRow>>
  /** The same at once, where that is possible: for the live feed. */
  readonly rowsNow: (scopes: ReadonlySet<string>) => ReadonlyArray<ScopeRow>
  /** Why a call waits now, or what became of it; null when nobody knows it. */
  readonly explain: (callId: string) => Promise<ExplainAnswer | null>
  /** Every entry from now on. Answers how to stop. */
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
      promote: (scope, callId) => runnerOf(scope)?.tell({ type: 'call.promoted', callId }) != null,
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
 * A journal file, also beside the host that writes it; never writes. Rejects as `openSqliteReader`
 * does: with `JournalTooNew`, `JournalCorrupt`, or `JournalUnavailable` when there is none at `path`.
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

/** Another process may be writing the file: what it adds is looked for now and then. */
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
    // A reader that is closed meanwhile, or damage, shows in the page's own questions.
    look()
      .catch(() => {})
      .finally(() => {
        busy = false
      })
  }, tailEveryMs)
  timer.unref()
  return () => clearInterval(timer)
}
