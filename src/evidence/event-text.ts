/** Complete event-stream texts, for example from a client library or a log. Live streams: `stream.ts`. */

export interface TextEvent {
  /** The `event:` field; empty when the provider names none. */
  readonly name: string
  readonly data: string
}

/** Errors stand at the start or the end of a stream; the text between them is model output. */
const headCapChars = 65_536
const tailCapChars = 131_072
const eventCap = 4000

const fieldLine = /^(?:data|event|id|retry)?:/

/** The text begins like an event stream: a field or a comment on its first line that is not empty. */
export const looksLikeEvents = (text: string): boolean => {
  const start = text.slice(0, 512).replace(/^[\uFEFF\s]+/, '')
  return fieldLine.test(start)
}

/** Events of the text, in order; of a longer text, those that lie whole in its head or its tail. */
export const readEvents = (text: string): ReadonlyArray<TextEvent> => {
  if (text.length <= headCapChars + tailCapChars) return eventsOf(text)
  const tail = text.slice(-tailCapChars)
  const boundary = /\r?\n\r?\n/.exec(tail)
  const head = eventsOf(text.slice(0, headCapChars)).slice(0, -1)
  return boundary === null ? head : [...head, ...eventsOf(tail.slice(boundary.index + boundary[0].length))]
}

const eventsOf = (text: string): TextEvent[] => {
  const events: TextEvent[] = []
  let name = ''
  let data: string[] = []
  const dispatch = (): void => {
    if (data.length > 0 || name !== '') events.push({ name, data: data.join('\n') })
    name = ''
    data = []
  }
  for (const line of text.split(/\r\n|\n|\r/)) {
    if (events.length >= eventCap) break
    if (line === '') dispatch()
    else if (line.startsWith('data:')) data.push(line.slice(line[5] === ' ' ? 6 : 5))
    else if (line.startsWith('event:')) name = line.slice(6).trim()
  }
  dispatch()
  return events
}
