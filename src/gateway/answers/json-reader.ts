/** Reads an answer that is one JSON text, of any length: its errors and its usage. */
import type { Evidence } from '../../../machines/index.ts'
import { classify, errorsIn, readUsage, type Usage, usageAround } from '../../evidence/index.ts'
import type { AnswerHead } from '../passage/transport.ts'
import { type BodyReader, type BodyReading, coreUsage, nothingRead } from './body-reading.ts'
import { JsonEnd } from './json-end.ts'

/** Up to this length an answer is parsed whole, bytes. */
const wholeBytes = 1024 * 1024
/** Bytes that are kept of the start and of the end of a longer text: usage stands there. */
const edgeBytes = 65_536

export const makeJsonReader = (provider: string, head: AnswerHead, receivedAtMs: number): BodyReader => {
  let chunks: Array<Buffer> = []
  let bytes = 0
  let start: Buffer | null = null
  let reading: BodyReading = nothingRead
  const compact = (): void => {
    const all = Buffer.concat(chunks)
    start ??= Buffer.from(all.subarray(0, edgeBytes))
    chunks = [Buffer.from(all.subarray(-edgeBytes))]
  }
  let kept = 0
  let done = false
  const textEnd = new JsonEnd()
  const keep = (chunk: Buffer): void => {
    bytes += chunk.length
    kept += chunk.length
    chunks.push(chunk)
    if (bytes <= wholeBytes || kept <= 4 * edgeBytes) return
    compact()
    kept = edgeBytes
  }
  const judge = (): void => {
    done = true
    if (bytes <= wholeBytes) reading = readWhole(provider, head, receivedAtMs, Buffer.concat(chunks))
    else {
      compact()
      reading = readEdges(provider, [chunks[0] as Buffer, start as Buffer])
    }
    chunks = []
  }
  return {
    push: (chunk) => {
      // Behind the text's own end nothing is an answer.
      if (done) return
      keep(chunk)
      if (textEnd.push(chunk)) judge()
    },
    end: (read) => {
      if (!done) judge()
      if (textEnd.isOpen) reading = { ...reading, truncated: true }
      read()
    },
    reading: () => reading,
    get done() {
      return done
    },
    begun: false,
    unread: false,
  }
}

/** What a whole JSON answer says. */
export const readWhole = (
  provider: string,
  { headers }: AnswerHead,
  receivedAt: number,
  bytes: Buffer,
): BodyReading => {
  const body = parsed(bytes)
  return {
    usage: coreUsage(usageOf(provider, body)),
    evidence: errorsIn(body) ? evidenceOf(provider, headers, body, receivedAt) : null,
    truncated: false,
  }
}

const evidenceOf = (
  provider: string,
  headers: AnswerHead['headers'],
  body: unknown,
  receivedAt: number,
): Evidence => classify({ provider, status: 200, headers, body, receivedAt })

/** Of an array, such as Gemini streams without `alt=sse`, the last element that states one counts for all. */
const usageOf = (provider: string, body: unknown): Usage | null =>
  Array.isArray(body)
    ? (body.map((element) => readUsage(provider, element)).findLast((usage) => usage !== null) ?? null)
    : readUsage(provider, body)

const readEdges = (provider: string, edges: ReadonlyArray<Buffer>): BodyReading => {
  for (const edge of edges) {
    const usage = usageAround(provider, edge)
    if (usage !== null) return { ...nothingRead, usage: coreUsage(usage) }
  }
  return nothingRead
}

const parsed = (body: Buffer): unknown => {
  try {
    return JSON.parse(body.toString('utf8').replace(/^\ufeff/, ''))
  } catch {
    return null
  }
}
