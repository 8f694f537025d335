/** Reads an answer as it passes: limits from its head, usage and errors from its body. Never changes a byte, never keeps text. */
import type { Evidence, LimitReading, Usage } from '../../machines/index.ts'
import {
  classify,
  makeStreamReader,
  type Usage as ReadUsage,
  readLimits,
  readUsage,
} from '../evidence/index.ts'
import type { AnswerHead } from './transport.ts'

/** Of a JSON answer, what is held until its end to read its usage, bytes. */
const heldBytes = 1024 * 1024

export interface BodyReading {
  readonly usage: Usage | null
  /** What an error inside a stream says; null while there is none. */
  readonly evidence: Evidence | null
}

/** Takes the chunks of one successful answer. */
export interface BodyReader {
  push(chunk: Buffer): void
  /** The answer is complete. */
  end(): void
  /** What is known so far. */
  reading(): BodyReading
}

/** What the core reads of a usage; cache reads are told where there were any. */
export const coreUsage = (usage: ReadUsage | null): Usage | null => {
  if (usage === null) return null
  const { inputTokens, allInputTokens, outputTokens, cacheReadTokens } = usage
  if (cacheReadTokens === 0) return { inputTokens, outputTokens }
  return { inputTokens, outputTokens, allInputTokens, cacheReadTokens }
}

export const isEventStream = (head: AnswerHead): boolean =>
  /^\s*text\/event-stream/i.test(head.headers['content-type'] ?? '')

const nothing: BodyReading = { usage: null, evidence: null }
const blind: BodyReader = { push: () => {}, end: () => {}, reading: () => nothing }

export const makeBodyReader = (provider: string, head: AnswerHead, receivedAtMs: number): BodyReader => {
  // It was asked not to be encoded; what is all the same passes unread.
  if ((head.headers['content-encoding'] ?? 'identity') !== 'identity') return blind
  if (isEventStream(head)) return streamReader(provider, head, receivedAtMs)
  return /\bjson\b/i.test(head.headers['content-type'] ?? '')
    ? jsonReader(provider, head, receivedAtMs)
    : blind
}

const streamReader = (provider: string, { headers }: AnswerHead, receivedAt: number): BodyReader => {
  const reader = makeStreamReader(provider, { headers, receivedAt })
  return {
    push: (chunk) => reader.push(chunk),
    end: () => reader.end(),
    reading: () => ({ usage: coreUsage(reader.usage), evidence: reader.evidence }),
  }
}

const jsonReader = (provider: string, head: AnswerHead, receivedAtMs: number): BodyReader => {
  let chunks: Array<Buffer> = []
  let bytes = 0
  let reading = nothing
  return {
    push: (chunk) => {
      bytes += chunk.length
      if (bytes <= heldBytes) chunks.push(chunk)
      else chunks = []
    },
    end: () => {
      const body = parsed(Buffer.concat(chunks))
      reading = {
        usage: coreUsage(readUsage(provider, body)),
        // Some relays answer 200 with an error inside.
        evidence: hasError(body) ? classify({ provider, ...head, body, receivedAt: receivedAtMs }) : null,
      }
    },
    reading: () => reading,
  }
}

const hasError = (body: unknown): boolean =>
  typeof body === 'object' && body !== null && 'error' in body && Boolean(body.error)

const parsed = (body: Buffer): unknown => {
  try {
    return JSON.parse(body.toString('utf8'))
  } catch {
    return null
  }
}

/** What a refusal or a failure says about capacity; null when it says nothing. */
export const capacityEvidence = (
  provider: string,
  { status, headers }: AnswerHead,
  body: Buffer,
  receivedAt: number,
): Evidence | null => {
  const evidence = classify({ provider, status, headers, body: body.toString('utf8'), receivedAt })
  return evidence.kind === 'not-capacity' ? null : evidence
}

const plainDimensions: ReadonlySet<string> = new Set<LimitReading['dimension']>([
  'requests-per-minute',
  'requests-per-day',
  'tokens-per-minute',
  'tokens-per-day',
  'input-tokens-per-minute',
  'output-tokens-per-minute',
])

const isPlain = (limit: { readonly dimension: string }): limit is LimitReading =>
  plainDimensions.has(limit.dimension)

/** How often the limits of one scope are read from successes at most, milliseconds: they say the same again and again. */
const readEveryMs = 100

/** Reads limits from the heads of answers, of the kinds that a budget knows. */
export class LimitReader {
  readonly #readAtMs = new Map<string, number>()

  /** Empty when the head shows none, or was not worth reading. What refuses is always read. */
  read(scope: string, provider: string, head: AnswerHead, receivedAtMs: number): ReadonlyArray<LimitReading> {
    const last = this.#readAtMs.get(scope) ?? Number.NEGATIVE_INFINITY
    if (head.status < 300 && receivedAtMs < last + readEveryMs) return []
    if (!showsLimits(head)) return []
    this.#readAtMs.set(scope, receivedAtMs)
    return readLimits(provider, head.headers, receivedAtMs).filter(isPlain)
  }
}

const showsLimits = ({ headers }: AnswerHead): boolean => {
  for (const name in headers) if (/rate-?limit|tokenlimit/.test(name)) return true
  return false
}
