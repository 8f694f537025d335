/**
 * Watches a provider's event stream as it passes: usage, the first token, an error after a 200, the end.
 *
 * Cost: an ordinary delta is never parsed. An event of a known name is decided by that name; any other by
 * byte searches for `"usage"`, `"usageMetadata"`, `"error"` and a refusal's number as keys, which model output cannot satisfy,
 * because quotes inside a JSON string are escaped. Only the small usage object, and events that carry an
 * error, become values.
 */
import type { Evidence } from '../../machines/model/evidence.ts'
import { isObject } from './answer.ts'
import { classify } from './classify.ts'
import { envelopesOf } from './envelope.ts'
import { type BytesEvent, makeEventCutter } from './event-bytes.ts'
import type { HeaderBag } from './header-map.ts'
import { readLiteral } from './literal.ts'
import { type Usage, usageOf } from './usage.ts'

export interface StreamReader {
  /** Takes the next bytes, cut anywhere. Never throws and never keeps the chunk. */
  push(chunk: Uint8Array): void
  /** The stream has ended. Needed only where the last event may lack its blank line. */
  end(): void
  /** Usage so far: on most wires it comes at the end, and Anthropic's output count grows. */
  readonly usage: Usage | null
  /** Output has begun: text, reasoning or a tool call, and not merely a role. */
  readonly firstTokenSeen: boolean
  /** What an error inside the stream says; null while there is none. */
  readonly evidence: Evidence | null
  /** The stream's own end was seen, or an error that ends it. */
  readonly done: boolean
  /** A whole event was seen, of any kind. */
  readonly eventSeen: boolean
  /**
   * The stream began on a wire whose end is known (Anthropic, Responses, chat chunks, Gemini) and that
   * end has not been seen. A stream that is over and says so was cut short, however cleanly it closed.
   */
  readonly truncated: boolean
}

/** The head of the answer that the stream belongs to; its `retry-after` also counts for an error inside. */
export interface StreamHead {
  readonly headers?: HeaderBag
  readonly receivedAt?: number | string
}

const endingEvents: ReadonlySet<string> = new Set([
  'message_stop',
  'response.completed',
  'response.failed',
  'response.incomplete',
])
const usageEvents: ReadonlySet<string> = new Set([
  'message_start',
  'message_delta',
  'response.completed',
  'response.incomplete',
])
const errorEvents: ReadonlySet<string> = new Set(['error', 'response.failed'])
const deltaEvent = /^(?:content_block_delta|response\..{1,80}\.delta)$/
/** Events that carry neither output nor an account of it. Names that nobody knows are searched instead. */
const quietEvent = /^(?:ping|content_block_(?:start|stop)|response\..{1,80})$/
const usageNeedles = ['"usage"', '"usageMetadata"'] as const
/** Keys that hold output, and the first byte of a value that is not empty. */
const outputNeedles = [
  '"content"',
  '"text"',
  '"reasoning"',
  '"reasoning_content"',
  '"arguments"',
  '"tool_calls"',
  '"functionCall"',
  '"refusal"',
] as const

/** A wire whose streams have an end of their own; null while none was recognized. */
type KnownWire = 'named' | 'chat' | 'gemini' | null

interface StreamState {
  wire: KnownWire
  eventSeen: boolean
  /** The model has said why it stopped: all that some servers of the chat wire say, and Gemini's last word. */
  reasonSeen: boolean
  usage: Usage | null
  firstTokenSeen: boolean
  evidence: Evidence | null
  done: boolean
}

export const makeStreamReader = (provider: string, head: StreamHead = {}): StreamReader => {
  const state: StreamState = {
    wire: null,
    eventSeen: false,
    reasonSeen: false,
    usage: null,
    firstTokenSeen: false,
    evidence: null,
    done: false,
  }
  const cutter = makeEventCutter((event) => {
    readEvent(state, provider, head, event)
  })
  return {
    push: cutter.push,
    end: cutter.end,
    get usage() {
      return state.usage
    },
    get firstTokenSeen() {
      return state.firstTokenSeen
    },
    get evidence() {
      return state.evidence
    },
    get done() {
      return state.done
    },
    get eventSeen() {
      return state.eventSeen
    },
    get truncated() {
      return state.wire !== null && !state.done && !state.reasonSeen
    },
  }
}

const readEvent = (state: StreamState, provider: string, head: StreamHead, event: BytesEvent): void => {
  const name = event.name === '' || event.name === 'message' ? typeOf(event.head) : event.name
  state.eventSeen = true
  readWire(state, name, event)
  if (deltaEvent.test(name)) {
    state.firstTokenSeen = true
    return
  }
  if (event.data.length <= 8 && event.data.toString('latin1').trim() === '[DONE]') {
    state.done = true
    return
  }
  const known = usageEvents.has(name) || errorEvents.has(name) || endingEvents.has(name)
  const searched = !known && !quietEvent.test(name)
  if (searched && !state.firstTokenSeen) state.firstTokenSeen = holdsOutput(event.data)
  if (searched || usageEvents.has(name)) readUsageIn(state, provider, event, name)
  if (errorEvents.has(name) || (searched && (mentionsError(event.data) || mentionsNumber(event.data))))
    readErrorIn(state, provider, head, event)
  if (endingEvents.has(name)) state.done = true
}

const namedWire = /^(?:message_start|response\.(?:created|in_progress|queued))$/

const readWire = (state: StreamState, name: string, { data }: BytesEvent): void => {
  if (namedWire.test(name)) state.wire = 'named'
  else if (state.wire === null && name === '') {
    if (data.includes('"choices"')) state.wire = 'chat'
    else if (data.includes('"candidates"')) state.wire = 'gemini'
  }
  if (state.reasonSeen) return
  if (state.wire === 'chat') state.reasonSeen = hasText(data, '"finish_reason"')
  else if (state.wire === 'gemini') state.reasonSeen = hasText(data, '"finishReason"')
}

/** The key has a text as its value, and not null. */
const hasText = (data: Buffer, needle: string): boolean => {
  const at = data.lastIndexOf(needle)
  return at >= 0 && data[valueStart(data, at + needle.length)] === 0x22
}

/** The `type` that opens the data, for relays that drop event names. Longer types are none of ours. */
const typeOf = (head: Buffer): string => {
  return /^\s*\{\s*"type"\s*:\s*"([\w.]{1,60})"/.exec(head.toString('latin1'))?.[1] ?? ''
}

const readUsageIn = (state: StreamState, provider: string, event: BytesEvent, name: string): void => {
  for (const needle of usageNeedles) {
    const object = lastObjectAt(event.data, needle)
    const usage =
      object === null ? null : usageOf(name.startsWith('message_') ? 'anthropic' : provider, object)
    if (usage === null) continue
    state.usage = name === 'message_delta' ? mergeDelta(state.usage, usage, object ?? {}) : usage
    // Gemini has no closing event; its last chunk names the reason.
    if (needle === '"usageMetadata"' && event.data.includes('"finishReason"')) state.done = true
  }
}

/** `message_delta` counts from the start of the message, and may leave out what `message_start` has said. */
const mergeDelta = (before: Usage | null, delta: Usage, stated: Readonly<Record<string, unknown>>): Usage => {
  if (before === null) return delta
  const states = (key: string): boolean => typeof stated[key] === 'number'
  const cacheWriteTokens = states('cache_creation_input_tokens')
    ? delta.cacheWriteTokens
    : before.cacheWriteTokens
  const freshTokens = delta.inputTokens - delta.cacheWriteTokens
  // A relay that counts nothing writes 0.
  const inputTokens = freshTokens > 0 ? freshTokens + cacheWriteTokens : before.inputTokens
  const cacheReadTokens = states('cache_read_input_tokens') ? delta.cacheReadTokens : before.cacheReadTokens
  return {
    inputTokens,
    allInputTokens: inputTokens + cacheReadTokens,
    outputTokens: delta.outputTokens,
    cacheReadTokens,
    cacheWriteTokens,
  }
}

/** Usage that stands somewhere in a part of an answer: near its start or its end. */
export const usageAround = (provider: string, part: Buffer): Usage | null => {
  for (const needle of usageNeedles) {
    const object = lastObjectAt(part, needle)
    const usage = object === null ? null : usageOf(provider, object)
    if (usage !== null) return usage
  }
  return null
}

const valueCapBytes = 4096
const triesCap = 4

/** The last object that is the value of this key. Earlier ones may belong to an echoed tool schema. */
const lastObjectAt = (data: Buffer, needle: string): Readonly<Record<string, unknown>> | null => {
  let at = data.lastIndexOf(needle)
  for (let tries = 0; at >= 0 && tries < triesCap; tries++) {
    const opensAt = valueStart(data, at + needle.length)
    if (data[opensAt] === 0x7b) {
      const value = readLiteral(data.toString('utf8', opensAt, opensAt + valueCapBytes), 0)?.value
      if (isObject(value) && usageOf('', value) !== null) return value
    }
    at = at === 0 ? -1 : data.lastIndexOf(needle, at - 1)
  }
  return null
}

/** Index of the value behind a key that ends at `at`, or -1 when no colon follows: then it was a value itself. */
const valueStart = (data: Buffer, at: number): number => {
  let index = skipBlanks(data, at)
  if (data[index] !== 0x3a) return -1
  index = skipBlanks(data, index + 1)
  return index
}

const skipBlanks = (data: Buffer, at: number): number => {
  let index = at
  while (data[index] === 0x20 || data[index] === 0x09) index += 1
  return index
}

const holdsOutput = (data: Buffer): boolean => {
  return outputNeedles.some((needle) => {
    const at = data.indexOf(needle)
    const opensAt = at < 0 ? -1 : valueStart(data, at + needle.length)
    const opening = data[opensAt]
    if (opening === 0x22) return data[opensAt + 1] !== 0x22
    // `[` and `{`: not when they close at once.
    return (
      (opening === 0x5b && data[opensAt + 1] !== 0x5d) || (opening === 0x7b && data[opensAt + 1] !== 0x7d)
    )
  })
}

/** An `error` key with a value, or `"type": "error"` and `"object": "error"`. */
const mentionsError = (data: Buffer): boolean => {
  const at = data.indexOf('"error"')
  if (at < 0) return false
  const opensAt = valueStart(data, at + 7)
  return opensAt < 0 || data[opensAt] !== 0x6e
}

/** Keys under which a refusal inside a success states its number. */
const numberNeedles = [
  '"status_code"',
  '"statusCode"',
  '"error_code"',
  '"errorCode"',
  '"err_code"',
  '"errcode"',
  '"code"',
] as const

/** One of them has a value, and not 0, by which each chunk of some wires says that all is well. */
const mentionsNumber = (data: Buffer): boolean =>
  numberNeedles.some((needle) => {
    const at = data.indexOf(needle)
    if (at < 0) return false
    const opensAt = valueStart(data, at + needle.length)
    const first = data[opensAt] === 0x22 ? data[opensAt + 1] : data[opensAt]
    return opensAt >= 0 && first !== undefined && first !== 0x30 && first !== 0x6e
  })

const readErrorIn = (state: StreamState, provider: string, head: StreamHead, event: BytesEvent): void => {
  if (state.evidence !== null) return
  // Of an error that echoes a long request, the start says what it is.
  const text = (event.truncated ? event.head : event.data).toString('utf8')
  const body = event.name === '' ? text : `event: ${event.name}\ndata: ${text.replaceAll('\n', ' ')}\n\n`
  if (envelopesOf(body, false).length === 0) return
  const { headers = {}, receivedAt } = head
  state.evidence = classify({ provider, status: 200, headers, body, receivedAt })
  state.done = true
}
