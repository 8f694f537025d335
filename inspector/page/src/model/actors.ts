/** XState actors that stream in: their names, their states, and the messages between them. */
import type { Chart } from '../../../chart.ts'
import type { ActorFrame, StateValue } from '../../../protocol.ts'

export interface ActorView {
  readonly sessionId: string
  readonly parentId: string | null
  readonly name: string
  readonly status: string
  readonly value: StateValue | null
  readonly previousValue: StateValue | null
  readonly chart: Chart | null
  readonly lastEvent: string
}

export interface Message {
  readonly number: number
  readonly at: number
  readonly from: string | null
  readonly to: string
  readonly eventType: string
}

export interface ActorsState {
  readonly actors: ReadonlyMap<string, ActorView>
  /** Newest last, at most `maxMessages`. */
  readonly messages: ReadonlyArray<Message>
  /** Messages ever seen. */
  readonly total: number
}

export const noActors: ActorsState = { actors: new Map(), messages: [], total: 0 }

const maxMessages = 500
const maxActors = 1_000

const unknownActor = (sessionId: string): ActorView => ({
  sessionId,
  parentId: null,
  name: sessionId,
  status: 'active',
  value: null,
  previousValue: null,
  chart: null,
  lastEvent: '',
})

const sameValue = (one: StateValue | null, other: StateValue | null): boolean =>
  JSON.stringify(one) === JSON.stringify(other)

const foldActor = (actors: Map<string, ActorView>, frame: ActorFrame): void => {
  const { sessionId } = frame
  const known = actors.get(sessionId) ?? unknownActor(sessionId)
  if (frame.kind === 'actor') {
    const { name, parentId, status, value, chart } = frame
    actors.set(sessionId, { ...known, name, parentId, status, value, chart })
  } else if (frame.kind === 'snapshot') {
    const { status, value, eventType } = frame
    const previousValue = sameValue(known.value, value) ? known.previousValue : known.value
    actors.set(sessionId, { ...known, status, value, previousValue, lastEvent: eventType })
  } else actors.set(sessionId, known)
  const [oldest] = actors.keys()
  if (actors.size > maxActors && oldest !== undefined) actors.delete(oldest)
}

export const foldActors = (state: ActorsState, frames: ReadonlyArray<ActorFrame>): ActorsState => {
  if (frames.length === 0) return state
  const actors = new Map(state.actors)
  const messages = [...state.messages]
  let { total } = state
  for (const frame of frames) {
    foldActor(actors, frame)
    if (frame.kind !== 'event') continue
    total += 1
    const { at, sourceId, sessionId, eventType } = frame
    messages.push({ number: total, at, from: sourceId, to: sessionId, eventType })
  }
  return { actors, messages: messages.slice(-maxMessages), total }
}
