/** Chooses the reader of a successful answer by the answer's head. */
import { makeStreamReader } from '../../evidence/index.ts'
import type { AnswerHead } from '../passage/transport.ts'
import { type BodyReader, coreUsage, nothingRead } from './body-reading.ts'
import { decodedReader, isEncoded } from './decoding.ts'
import { makeFramesReader } from './frames-reader.ts'
import { makeJsonReader } from './json-reader.ts'
import { makeLinesReader } from './lines-reader.ts'

export type BodyKind = 'events' | 'json' | 'lines' | 'frames' | 'other'

export const kindOf = ({ headers }: AnswerHead): BodyKind => {
  const type = (headers['content-type'] ?? '').trim().toLowerCase()
  if (type.startsWith('text/event-stream')) return 'events'
  if (type.startsWith('application/vnd.amazon.eventstream')) return 'frames'
  if (/^application\/(?:x-ndjson|ndjson|jsonl|x-jsonlines|stream\+json|jsonlines)\b/.test(type))
    return 'lines'
  return /\bjson\b/.test(type) ? 'json' : 'other'
}

export const isEventStream = (head: AnswerHead): boolean => kindOf(head) === 'events'

/** `concluded` is called once, when the answer's own end has passed. */
export const makeBodyReader = (
  provider: string,
  head: AnswerHead,
  receivedAtMs: number,
  concluded: () => void,
): BodyReader => {
  const plain = makePlainReader(provider, head, receivedAtMs)
  const encoding = head.headers['content-encoding']
  if (encoding !== undefined && isEncoded(encoding)) return decodedReader(encoding, plain, concluded)
  return {
    push: (chunk) => {
      const wasDone = plain.done
      plain.push(chunk)
      if (plain.done && !wasDone) concluded()
    },
    end: (read) => plain.end(read),
    reading: () => plain.reading(),
    get done() {
      return plain.done
    },
    get begun() {
      return plain.begun
    },
    get unread() {
      return plain.unread
    },
  }
}

const makePlainReader = (provider: string, head: AnswerHead, receivedAtMs: number): BodyReader => {
  switch (kindOf(head)) {
    case 'events':
      return makeEventsReader(provider, head, receivedAtMs)
    case 'json':
      return makeJsonReader(provider, head, receivedAtMs)
    case 'lines':
      return makeLinesReader(provider, head, receivedAtMs)
    case 'frames':
      return makeFramesReader(provider, head, receivedAtMs)
    case 'other':
      return {
        push: () => {},
        end: (read) => read(),
        reading: () => nothingRead,
        done: false,
        begun: true,
        unread: false,
      }
  }
}

const makeEventsReader = (provider: string, { headers }: AnswerHead, receivedAt: number): BodyReader => {
  const reader = makeStreamReader(provider, { headers, receivedAt })
  return {
    push: (chunk) => reader.push(chunk),
    end: (read) => {
      reader.end()
      read()
    },
    reading: () => ({
      usage: coreUsage(reader.usage),
      evidence: reader.evidence,
      truncated: reader.truncated,
    }),
    get done() {
      return reader.done
    },
    get begun() {
      return reader.eventSeen
    },
    unread: false,
  }
}
