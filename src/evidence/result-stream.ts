/**
 * Finds the stream in the result of a function: the SDKs' own stream classes, the streams in them, and plain
 * streams. Told apart by shape; no SDK is imported.
 */
import type { Evidence } from '../../machines/model/evidence.ts'
import { evidenceOfError } from './error-evidence.ts'
import { makeStreamReader } from './stream.ts'
import { readUsage, type Usage } from './usage.ts'

/** How a stream ended. */
export type StreamEnd =
  | { readonly kind: 'complete' | 'dropped' }
  | { readonly kind: 'broken'; readonly error: unknown }

/** Hears of a stream that runs on by itself, also without a reader. */
export interface StreamListener {
  chunk(chunk: unknown): void
  ended(end: StreamEnd): void
}

export type ResultStream =
  /** It runs by itself: `MessageStream`, `ChatCompletionStream` and `ResponseStream`; the results of `streamText` and `streamObject`. */
  | { readonly kind: 'running'; readonly listen: (listener: StreamListener) => void }
  /** Its reader drives it; `member` hands out its iterator; a generator is its own iterator (`next`). */
  | {
      readonly kind: 'iterable'
      readonly target: object
      readonly member: 'iterator' | 'next' | typeof Symbol.asyncIterator
    }
  | { readonly kind: 'readable'; readonly stream: ReadableStream<unknown> }
  /** It is a member of the result, as in `{ data, response }` of `withResponse()`. */
  | { readonly kind: 'member'; readonly name: 'data' | 'stream'; readonly stream: ResultStream }

type Members = Readonly<Record<PropertyKey, unknown>>

const isObject = (value: unknown): value is Members => typeof value === 'object' && value !== null

const isCallable = (value: unknown): value is (...args: ReadonlyArray<unknown>) => unknown =>
  typeof value === 'function'

/** The stream of a result; null when it holds none. Asks no getter that starts or uses up a stream. */
export const streamIn = (result: unknown): ResultStream | null => {
  if (!isObject(result)) return null
  if ('textStream' in result && 'fullStream' in result)
    return { kind: 'running', listen: listenToParts(result) }
  if (result instanceof ReadableStream) return { kind: 'readable', stream: result }
  if (isCallable(result[Symbol.asyncIterator])) return iterableIn(result)
  for (const name of ['data', 'stream'] as const) {
    const member = Object.getOwnPropertyDescriptor(result, name)?.value as unknown
    const stream = isObject(member) && !('fullStream' in member) ? streamIn(member) : null
    if (stream !== null && stream.kind !== 'member') return { kind: 'member', name, stream }
  }
  return null
}

const iterableIn = (result: Members): ResultStream | null => {
  // A page of a list iterates over the pages behind it: it is whole, and asks for them as new calls.
  if (isCallable(result['getNextPage']) || isCallable(result['iterPages'])) return null
  if (isCallable(result['on']) && isCallable(result['done']))
    return { kind: 'running', listen: listenToEmitter(result) }
  if (!Object.isExtensible(result)) return null
  if (isCallable(result['next'])) return { kind: 'iterable', target: result, member: 'next' }
  const member =
    Object.hasOwn(result, 'iterator') && isCallable(result['iterator']) ? 'iterator' : Symbol.asyncIterator
  return { kind: 'iterable', target: result, member }
}

/** Names under which the emitters of `openai` and `@anthropic-ai/sdk` hand out chunks. */
const chunkEvents = ['streamEvent', 'chunk', 'event'] as const

const listenToEmitter =
  (emitter: Members) =>
  ({ chunk, ended }: StreamListener): void => {
    const on = (event: string, fn: (value: unknown) => void): unknown =>
      (emitter['on'] as (event: string, fn: (value: unknown) => void) => unknown).call(emitter, event, fn)
    for (const event of chunkEvents) on(event, chunk)
    const finish = (): void => {
      const done = (emitter['done'] as () => Promise<unknown>).call(emitter)
      done.then(
        () => ended({ kind: 'complete' }),
        (error: unknown) =>
          ended(emitter['aborted'] === true ? { kind: 'dropped' } : { kind: 'broken', error }),
      )
    }
    if (emitter['ended'] === true) finish()
    else on('end', finish)
  }

/** The AI SDK shows each of its readers every part; one of them is ours. */
const listenToParts =
  (result: Members) =>
  ({ chunk, ended }: StreamListener): void => {
    const retention = result['retention']
    if (isObject(retention) && retention['replay'] === false) {
      // This one has a single reader, which is not ours to be.
      Promise.resolve(result['_totalUsage'] === undefined ? result['usage'] : result['totalUsage']).then(
        (usage) => {
          chunk({ usage })
          ended({ kind: 'complete' })
        },
        (error: unknown) => ended({ kind: 'broken', error }),
      )
      return
    }
    const read = async (): Promise<StreamEnd> => {
      let end: StreamEnd = { kind: 'complete' }
      for await (const part of result['fullStream'] as AsyncIterable<unknown>) {
        chunk(part)
        if (!isObject(part)) continue
        if (part['type'] === 'abort') end = { kind: 'dropped' }
        if (part['type'] === 'error') end = { kind: 'broken', error: part['error'] }
      }
      return end
    }
    read().then(ended, (error: unknown) => ended({ kind: 'broken', error }))
  }

export interface ChunkReader {
  /** Takes one chunk: bytes of an event stream, or an event that an SDK has parsed. Never throws. */
  push(chunk: unknown): void
  readonly usage: Usage | null
  /** The evidence of an error inside the stream; null while there is none. */
  readonly evidence: Evidence | null
  /** The stream's own end has passed; its reader may stop there. */
  readonly done: boolean
}

/** Reads usage and errors from the chunks of one stream. */
export const makeChunkReader = (provider: string): ChunkReader => {
  const wire = makeStreamReader(provider)
  let usage: Usage | null = null
  let evidence: Evidence | null = null
  let done = false
  /** The SDKs' `toReadableStream()` gives a line of JSON for each event; bytes from the wire never begin so. */
  let isLines: boolean | null = null
  const pushPart = (part: Members): void => {
    if (part['type'] === 'finish') {
      usage = readUsage(provider, { usage: part['totalUsage'] ?? part['usage'] })
      done = true
    } else if (part['type'] === 'error') {
      evidence = evidenceOfError(provider, part['error'])
    } else if (part['usage_metadata'] !== undefined) {
      usage = readUsage(provider, { usage: part['usage_metadata'] }) ?? usage
    }
  }
  const pushEvent = (event: unknown): void => {
    if (!isObject(event)) return
    pushPart(event)
    const text = eventText(event)
    if (text !== null) wire.push(Buffer.from(`data: ${text}\n\n`))
  }
  return {
    push: (chunk) => {
      if (!(chunk instanceof Uint8Array)) return pushEvent(chunk)
      isLines ??= chunk[0] === openingBrace
      if (isLines) pushEvent(parsed(chunk))
      else wire.push(chunk)
    },
    get usage() {
      return wire.usage ?? usage
    },
    get evidence() {
      return wire.evidence ?? evidence
    },
    get done() {
      return wire.done || done
    },
  }
}

const openingBrace = 0x7b

const parsed = (line: Uint8Array): unknown => {
  try {
    return JSON.parse(Buffer.from(line.buffer, line.byteOffset, line.byteLength).toString('utf8'))
  } catch {
    return null
  }
}

/** An event that an SDK has parsed, as it came, where it says anything of usage, an error or the end. */
const eventText = (event: Members): string | null => {
  const type = typeof event['type'] === 'string' ? event['type'] : ''
  const tells =
    /^(?:message_(?:start|delta|stop)|error|response\.(?:completed|failed|incomplete))$/.test(type) ||
    (type === '' &&
      (isObject(event['usage']) || isObject(event['usageMetadata']) || isObject(event['error'])))
  if (!tells) return null
  try {
    // The type first: the reader of the wire looks for it there.
    return JSON.stringify(type === '' ? event : { type, ...event })
  } catch {
    return null
  }
}
