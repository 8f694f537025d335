/**
 * Continues a scope whose history has a hole, from the readable part. A call that may have been sent in the
 * unreadable part has an unknown outcome. No call is ever sent a second time.
 */
import { HashMap } from 'effect'
import { advance, contextFrom, type ScopeContext, type ScopeEvent } from '../../machines/index.ts'
import { endingOf } from '../../machines/scheduling/lifecycle.ts'
import { encodeScope } from '../../machines/snapshot/codec.ts'
import type { MendedScope } from '../journal/repair.ts'
import type { HoledScope } from '../journal/salvage.ts'
import { readRecord } from './read-record.ts'
import { recordText } from './record-text.ts'
import { restsIn } from './scope-actor.ts'

/** The scope as far as its history tells, with one more entry that says what is not known. */
export const mendScope = (path: string, holed: HoledScope): MendedScope => {
  const { scope, entries, firstLost, damagedIds } = holed
  let context = beginning(holed)
  const suspects = new Set(damagedIds)
  let isPastHole = false
  for (const entry of entries) {
    if (!isPastHole && entry.position >= firstLost) {
      isPastHole = true
      suspect(context, suspects)
    }
    const event = eventOf(path, entry)
    if (event === null) continue
    if (isPastHole) for (const id of idsOf(event)) suspects.add(id)
    context = told(context, event)
  }
  suspect(context, suspects)
  const calls = [...suspects].filter((id) => endingOf(context, id) === undefined).sort()
  const event: ScopeEvent = { type: 'history.lost', at: context.at, calls }
  const mended = advance(context, event)
  return {
    scope,
    at: mended.at,
    record: recordText(event, mended.decisions),
    snapshot: JSON.stringify(encodeScope(mended)),
    resting: restsIn(mended),
    calls,
  }
}

const beginning = ({ scope, checkpoint }: HoledScope): ScopeContext => {
  try {
    return contextFrom(scope, checkpoint === null ? null : JSON.parse(checkpoint.snapshot))
  } catch {
    return contextFrom(scope)
  }
}

/** Whoever is live may have been sent, or answered, in the hole. */
const suspect = ({ waiting, inFlight }: ScopeContext, suspects: Set<string>): void => {
  for (const id of HashMap.keys(waiting)) suspects.add(id)
  for (const id of HashMap.keys(inFlight)) suspects.add(id)
}

const eventOf = (path: string, entry: HoledScope['entries'][number]): ScopeEvent | null => {
  try {
    return readRecord(path, entry).event
  } catch {
    return null
  }
}

const idsOf = (event: ScopeEvent): ReadonlyArray<string> =>
  event.type === 'call.submitted' ? [event.call.id] : 'callId' in event ? [event.callId] : []

/** After a hole an event may not fit what is known; then it tells nothing. */
const told = (context: ScopeContext, event: ScopeEvent): ScopeContext => {
  try {
    return advance(context, event)
  } catch {
    return context
  }
}
