/** Finds a journal's entries about one call, from the newest entry backwards. */
import type { Decision, ScopeContext, ScopeEvent } from '../../machines/index.ts'
import type { Checkpoint, Journal } from '../journal/journal.ts'
import { readRecord } from './read-record.ts'
import { Replayed } from './recovery.ts'

export interface FoundEntry {
  readonly scope: string
  readonly event: ScopeEvent
  /** The decisions about the call. */
  readonly own: ReadonlyArray<Decision>
}

export interface Found {
  /** Oldest first, from the call's submission on. */
  readonly entries: ReadonlyArray<FoundEntry>
  /** Whether the call's submission is among the entries, and why not. */
  readonly beginning: 'found' | 'compacted' | 'too far back'
  /** 0 when the journal is empty. */
  readonly newestPosition: number
}

type Readable = Pick<Journal, 'read'>

/** Positions in the first step back; each step is twice as long as the one before. */
const firstStep = 8_192

/** Reads at most `lookBack` positions. Rejects with `JournalCorrupt`. */
export const searchBack = async (
  journal: Readable,
  path: string,
  callId: string,
  lookBack: number,
): Promise<Found> => {
  const newestPosition = await newestOf(journal)
  const oldest = Math.max(0, newestPosition - lookBack)
  let entries: FoundEntry[] = []
  for (let through = newestPosition, step = firstStep; through > oldest; step *= 2) {
    const after = Math.max(oldest, through - step)
    const window = await searchWindow(journal, path, callId, { after, through })
    entries = [...window.entries, ...entries]
    if (window.hasBeginning) return { entries, beginning: 'found', newestPosition }
    through = after
  }
  const beginning = oldest === 0 ? 'compacted' : 'too far back'
  return { entries, beginning, newestPosition }
}

/**
 * Whether the entry is a submission that begins a call. A claim of a waiting call or a refusal of an ended
 * one does not.
 */
const begins = ({ event, own }: FoundEntry): boolean =>
  event.type === 'call.submitted' &&
  own.some(
    ({ verdict, reason, retryAfterMs }) =>
      verdict === 'admit' || verdict === 'defer' || reason === 'exceeds-limit' || retryAfterMs !== undefined,
  )

const searchWindow = async (
  journal: Readable,
  path: string,
  callId: string,
  { after, through }: { readonly after: number; readonly through: number },
) => {
  const quoted = JSON.stringify(callId)
  let entries: FoundEntry[] = []
  let hasBeginning = false
  for await (const batch of journal.read({ after, naming: { text: quoted, through } })) {
    for (const entry of batch) {
      const { event, decisions } = readRecord(path, entry)
      const own = decisions.filter((decision) => decision.callId === callId)
      const names = event.type === 'call.submitted' ? event.call.id : 'callId' in event ? event.callId : null
      if (names !== callId && own.length === 0) continue
      const found = { scope: entry.scope, event, own }
      // An id that was withdrawn may be used again: only the newest use is explained.
      if (begins(found)) entries = []
      hasBeginning ||= begins(found)
      entries.push(found)
    }
  }
  return { entries, hasBeginning }
}

/** The newest position. A journal does not state it, so this asks which entries come after a position. */
const newestOf = async (journal: Readable): Promise<number> => {
  const firstAfter = async (after: number): Promise<number | null> => {
    for await (const batch of journal.read({ after })) {
      const last = batch.at(-1)
      if (last !== undefined) return last.position
    }
    return null
  }
  let known = (await firstAfter(0)) ?? 0
  if (known === 0) return 0
  let step = 1_024
  for (let found = await firstAfter(known + step); found !== null; found = await firstAfter(known + step)) {
    known = found
    step *= 2
  }
  // No entry comes after `known + step`.
  let none = known + step
  while (none > known) {
    const middle = known + Math.floor((none - known) / 2)
    const found = await firstAfter(middle)
    if (found === null) none = middle
    else known = Math.max(found, middle + 1)
  }
  return known
}

/** The most entries after a checkpoint that are replayed to show the present. */
const mostReplayed = 50_000

/** The state of a scope in the journal of another process's host; null when rebuilding it would take long. */
export const stateInJournal =
  (journal: Pick<Journal, 'read' | 'checkpoints'>, path: string) =>
  async (scope: string, newestPosition: number): Promise<ScopeContext | null> => {
    const base = (await journal.checkpoints()).find((checkpoint) => checkpoint.scope === scope)
    if (newestPosition - (base?.position ?? 0) > mostReplayed) return null
    const replayed = new Replayed(scope, base)
    for await (const batch of journal.read({ scope, after: replayed.position })) {
      for (const entry of batch) replayed.follow(readRecord(path, entry), entry.position)
    }
    return replayed.context
  }

/** The states at the checkpoints that name the call. Only they remain when the call's entries are gone. */
export const checkpointsNaming = async (
  journal: Pick<Journal, 'checkpoints'>,
  callId: string,
): Promise<ReadonlyArray<ScopeContext>> => {
  const quoted = JSON.stringify(callId)
  const naming = (checkpoint: Checkpoint) => checkpoint.snapshot.includes(quoted)
  return (await journal.checkpoints())
    .filter(naming)
    .map((checkpoint) => new Replayed(checkpoint.scope, checkpoint).context)
}
