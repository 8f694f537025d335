/** Reads Amazon's binary event stream, as Bedrock answers `converse-stream` and `invoke-with-response-stream`. */
import { classify, readUsage } from '../../evidence/index.ts'
import type { AnswerHead } from '../passage/transport.ts'
import { type BodyReader, type BodyReading, coreUsage, nothingRead } from './body-reading.ts'

/** A longer frame is not read, bytes. Amazon's own bound is 24 MB for all kinds of streams; those of text are small. */
const frameBytes = 1024 * 1024
/** Total length, length of headers, checksum of both. */
const preludeBytes = 12
const checksumBytes = 4
/** Type of a header's value: text, with its length in two bytes. */
const textType = 7

export const makeFramesReader = (provider: string, head: AnswerHead, receivedAtMs: number): BodyReader => {
  let rest: Buffer = Buffer.alloc(0)
  let reading: BodyReading = nothingRead
  let frames = 0
  let isBroken = false
  let saysMore = false
  let done = false
  const take = (headers: ReadonlyMap<string, string>, payload: Buffer): void => {
    frames += 1
    const exception = headers.get(':exception-type') ?? headers.get(':error-code')
    const body = parsed(payload)
    if (exception !== undefined) {
      const frame = { headers: Object.fromEntries(headers), body }
      const answer = { provider, status: 200, headers: head.headers, receivedAt: receivedAtMs }
      reading = {
        ...reading,
        evidence: reading.evidence ?? classify({ ...answer, body: { frames: [frame] } }),
      }
      done = true
      return
    }
    const event = headers.get(':event-type') ?? ''
    const inner = event === 'chunk' ? chunkOf(body) : body
    const kind = typeof inner === 'object' && inner !== null && 'type' in inner ? String(inner.type) : event
    if (kind === 'messageStart' || kind === 'message_start') saysMore = true
    const usage = coreUsage(readUsage('bedrock', inner))
    if (usage !== null) {
      const before = reading.usage?.inputTokens ?? null
      // Claude's last event counts the output alone.
      reading = { ...reading, usage: { ...usage, inputTokens: usage.inputTokens || before } }
    }
    // `metadata` is the last event of a conversation, and holds its usage.
    if (kind === 'metadata' || kind === 'message_stop') done = true
  }
  return {
    push: (chunk) => {
      if (isBroken) return
      rest = rest.length === 0 ? chunk : Buffer.concat([rest, chunk])
      while (rest.length >= preludeBytes) {
        const total = rest.readUInt32BE(0)
        const headerBytes = rest.readUInt32BE(4)
        const isPossible = total >= preludeBytes + headerBytes + checksumBytes && total <= frameBytes
        if (!isPossible) {
          isBroken = true
          rest = Buffer.alloc(0)
          return
        }
        if (rest.length < total) return
        const payload = rest.subarray(preludeBytes + headerBytes, total - checksumBytes)
        take(headersIn(rest.subarray(preludeBytes, preludeBytes + headerBytes)), payload)
        rest = rest.subarray(total)
      }
    },
    end: (read) => {
      reading = { ...reading, truncated: saysMore && !done && !isBroken }
      read()
    },
    reading: () => reading,
    get done() {
      return done
    },
    get begun() {
      return frames > 0 || isBroken
    },
    get unread() {
      return isBroken
    },
  }
}

/** Headers whose values are text: all that matter here. Reading stops at any other. */
const headersIn = (bytes: Buffer): ReadonlyMap<string, string> => {
  const headers = new Map<string, string>()
  let at = 0
  while (at + 1 < bytes.length) {
    const nameEnds = at + 1 + (bytes[at] as number)
    if (bytes[nameEnds] !== textType || nameEnds + 3 > bytes.length) break
    const valueEnds = nameEnds + 3 + bytes.readUInt16BE(nameEnds + 1)
    headers.set(bytes.toString('latin1', at + 1, nameEnds), bytes.toString('utf8', nameEnds + 3, valueEnds))
    at = valueEnds
  }
  return headers
}

/** The model's own event inside `{"bytes": <Base64>}`. */
const chunkOf = (body: unknown): unknown => {
  const bytes = typeof body === 'object' && body !== null && 'bytes' in body ? body.bytes : null
  return typeof bytes === 'string' ? parsed(Buffer.from(bytes, 'base64')) : null
}

const parsed = (bytes: Buffer): unknown => {
  try {
    return JSON.parse(bytes.toString('utf8'))
  } catch {
    return null
  }
}
