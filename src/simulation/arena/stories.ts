/** The story of each primary under one of our policies, in the words of `explain`. */

import type { LogEntry } from '../../emulator/index.ts'
import { decisionLines, eventLine } from '../../host/explain-words.ts'
import type { LaneObserver } from '../schedulers.ts'

/** Lines by call, in the order of time. */
export type Stories = ReadonlyMap<string, ReadonlyArray<string>>

const mostLines = 60

/** Collects the stories of primaries from the events and decisions of the scope actor. */
export class StoryTeller {
  readonly #stories = new Map<string, string[]>()

  readonly observe: LaneObserver = (event, decisions) => {
    if (event.type === 'call.submitted' && event.call.lane === 'primary') this.#stories.set(event.call.id, [])
    const callId = event.type === 'call.submitted' ? event.call.id : 'callId' in event ? event.callId : null
    const said = callId === null ? null : eventLine(event)
    if (callId !== null && said !== null) this.#add(callId, said)
    for (const decision of decisions) {
      for (const line of decisionLines(decision)) this.#add(decision.callId, line)
    }
  }

  get stories(): Stories {
    return this.#stories
  }

  #add(callId: string, line: string): void {
    const story = this.#stories.get(callId)
    if (story === undefined || story.length > mostLines) return
    story.push(story.length === mostLines ? '…' : line)
  }
}

/** The provider's view of each primary: the story under policies that record no decisions. */
export const storiesOfLog = (log: ReadonlyArray<LogEntry>): Stories => {
  const stories = new Map<string, string[]>()
  for (const { at, kind, callId, lane, refusalKind } of log) {
    if (lane !== 'primary') continue
    const story = stories.get(callId) ?? []
    stories.set(callId, story)
    const why = refusalKind === undefined ? '' : `: ${refusalKind}`
    if (story.length < mostLines) story.push(`${new Date(at).toISOString().slice(11, 23)} ${kind}${why}`)
  }
  return stories
}
