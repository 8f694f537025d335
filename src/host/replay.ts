/** Any past state of a journal's scopes, and what was decided on the way there. */
import { Data } from 'effect'
import type { Decision, ScopeContext, ScopeEvent } from '../../machines/index.ts'
import type { Checkpoint, Journal } from '../journal/journal.ts'
import { type Record, readRecord } from './read-record.ts'
import { ReplayDiverged, Replayed } from './recovery.ts'

export interface ReplayQuery {
  /** Only this scope; all when absent. */
  readonly scope?: string
  /** The state at this time, epoch milliseconds; the newest when absent. */
  readonly untilAt?: number
}

/** One entry whose decisions differ between this version and the record. */
export interface Difference {
  readonly scope: string
  readonly position: number
  readonly event: ScopeEvent
  readonly was: ReadonlyArray<Decision>
  readonly is: ReadonlyArray<Decision>
}

export interface Replay {
  /** In order of their names. */
  readonly scopes: ReadonlyArray<{ readonly position: number; readonly context: ScopeContext }>
  readonly differences: ReadonlyArray<Difference>
  /** Scopes whose history of that time was dropped by retention, so that they are not among `scopes`. */
  readonly compacted: ReadonlyArray<string>
}

/** The entries that made the state at a time are gone: retention has dropped them. */
export class HistoryCompacted extends Data.TaggedError('HistoryCompacted')<{
  readonly scope: string
  readonly message: string
}> {
  constructor(path: string, { scope, at }: Checkpoint) {
    super({
      scope,
      message:
        `journal ${path}: the history of ${scope} was compacted, so its state at that time cannot be rebuilt; ` +
        `its newest checkpoint is of ${new Date(at).toISOString()}: ask for a later time`,
    })
  }
}

type ReadableJournal = Pick<Journal, 'read' | 'checkpoints'>

/**
 * Rebuilds scopes from their newest checkpoints and the entries after them; one scope's dropped history
 * keeps no other from being rebuilt, unless it is the one asked for. Where this version decides otherwise than
 * was recorded, calls stand where the record has them, and both are in `differences`. Rejects with
 * `HistoryCompacted`, `ReplayDiverged`, `JournalCorrupt` or `SnapshotUnreadable`.
 */
export const replayScopes = async (
  journal: ReadableJournal,
  path: string,
  { scope, untilAt = Number.POSITIVE_INFINITY }: ReplayQuery = {},
): Promise<Replay> => {
  const isWanted = (name: string) => scope === undefined || name === scope
  const differences: Difference[] = []
  const scopes = new Map<string, Replayed>()
  const bases = await journal.checkpoints(Number.isFinite(untilAt) ? { untilAt } : {})
  for (const base of bases) if (isWanted(base.scope)) scopes.set(base.scope, new Replayed(base.scope, base))
  const newest = new Map((await journal.checkpoints()).map((checkpoint) => [checkpoint.scope, checkpoint]))
  let reached = 0
  let gap = false
  const unsure = new Set<string>()
  const compacted = new Set<string>()
  for await (const batch of journal.read()) {
    for (const entry of batch) {
      gap ||= entry.position !== reached + 1
      reached = entry.position
      if (!isWanted(entry.scope) || entry.at > untilAt || compacted.has(entry.scope)) continue
      const replayed = scopes.get(entry.scope) ?? new Replayed(entry.scope)
      // Entries are dropped from the oldest on, up to a checkpoint: what is left without one may begin in the middle.
      if (replayed.position === 0 && gap && newest.has(entry.scope)) unsure.add(entry.scope)
      scopes.set(entry.scope, replayed)
      if (entry.position <= replayed.position) continue
      const record = readRecord(path, entry)
      const outcome = followed(replayed, record, entry.position)
      if (unsure.has(entry.scope) && (outcome instanceof ReplayDiverged || !outcome.same)) {
        compacted.add(entry.scope)
        continue
      }
      if (outcome instanceof ReplayDiverged) throw outcome
      const { event, decisions: was } = record
      if (!outcome.same)
        differences.push({ scope: entry.scope, position: entry.position, event, was, is: outcome.is })
    }
  }
  for (const name of newest.keys()) if (isWanted(name) && gap && !scopes.has(name)) compacted.add(name)
  const isNothingLeft = [...scopes.keys()].every((name) => compacted.has(name))
  for (const name of compacted) {
    const later = newest.get(name)
    if (later !== undefined && (name === scope || isNothingLeft)) throw new HistoryCompacted(path, later)
  }
  const rebuilt = [...scopes.values()]
    .filter(({ scope: name }) => !compacted.has(name))
    .sort((one, other) => (one.scope < other.scope ? -1 : 1))
    .map(({ position, context }) => ({ position, context }))
  return { scopes: rebuilt, differences, compacted: [...compacted].sort() }
}

const followed = (
  replayed: Replayed,
  record: Record,
  position: number,
): ReturnType<Replayed['follow']> | ReplayDiverged => {
  try {
    return replayed.follow(record, position)
  } catch (error) {
    if (error instanceof ReplayDiverged) return error
    throw error
  }
}

const time = (at: number): string => new Date(at).toISOString().slice(11, 23)

const said = (decisions: ReadonlyArray<Decision>): ReadonlyArray<string> =>
  decisions.map(({ callId, verdict, reason, state }) => `${verdict} ${callId}: ${reason} (in ${state})`)

const eventText = (event: ScopeEvent): string => {
  if (event.type === 'call.submitted') return `${event.type} ${event.call.id}`
  if (event.type === 'call.settled') return `${event.type} ${event.callId} (${event.outcome})`
  return 'callId' in event ? `${event.type} ${event.callId}` : event.type
}

/** A diff of decisions for a person: `-` was recorded, `+` is decided now. */
export const differenceText = (differences: ReadonlyArray<Difference>, most = 20): string =>
  [
    ...differences.slice(0, most).flatMap(({ scope, position, event, was, is }) => {
      const [before, now] = [said(was), said(is)]
      const removed = before.filter((line) => !now.includes(line)).map((line) => `  - ${line}`)
      const added = now.filter((line) => !before.includes(line)).map((line) => `  + ${line}`)
      const same = 'the same decisions, in another order or at another time'
      const lines = removed.length + added.length > 0 ? [...removed, ...added] : [`  ~ ${same}`]
      return [`entry ${position} of ${scope}, ${time(event.at)}, ${eventText(event)}`, ...lines]
    }),
    ...(differences.length > most ? [`... and ${differences.length - most} more entries`] : []),
  ].join('\n')
