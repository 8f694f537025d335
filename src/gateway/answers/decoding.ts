/** Answers that came encoded although identity was asked: decoded on the side, within bounds, and passed on as they are. */

import { codingOf } from '../passage/codings.ts'
import type { BodyReader } from './body-reading.ts'

export const isEncoded = (encoding: string | undefined): boolean =>
  encoding !== undefined && !/^\s*(?:identity)?\s*$/i.test(encoding)

/** A short body as it was before it was encoded; null when it is in no known coding, damaged, or grows beyond bounds. */
export const decodedWhole = (encoding: string, bytes: Buffer, mostBytes: number): Buffer | null => {
  try {
    return codingOf(encoding)?.whole(bytes, mostBytes) ?? null
  } catch {
    return null
  }
}

/** Decoded bytes of one answer that are read at most: a small body may unfold into an endless one. */
const mostDecodedBytes = 64 * 1024 * 1024
/** Encoded bytes that may wait for the decoder: beyond them it is too slow for the stream, which does not wait. */
const mostWaitingBytes = 8 * 1024 * 1024

/**
 * `reader` behind a decoder. Decoding takes its own time, so what is read may lag a little behind
 * what has passed; `concluded` is called when the answer's own end turns up that way.
 */
export const decodedReader = (encoding: string, reader: BodyReader, concluded: () => void): BodyReader => {
  const stream = codingOf(encoding)?.stream() ?? null
  let isBlind = stream === null
  let decodedBytes = 0
  let ended: (() => void) | null = null
  const over = (): void => {
    const read = ended
    ended = null
    if (read !== null) reader.end(read)
  }
  const giveUp = (): void => {
    isBlind = true
    stream?.destroy()
    over()
  }
  stream?.on('data', (chunk: Buffer) => {
    decodedBytes += chunk.length
    if (decodedBytes > mostDecodedBytes) return giveUp()
    const wasDone = reader.done
    reader.push(chunk)
    if (reader.done && !wasDone) concluded()
  })
  stream?.on('error', giveUp)
  stream?.on('end', over)
  return {
    push: (chunk) => {
      if (isBlind || stream === null) return
      if (stream.writableLength > mostWaitingBytes) giveUp()
      else stream.write(chunk)
    },
    end: (read) => {
      if (isBlind || stream === null) return read()
      ended = read
      stream.end()
    },
    reading: () => (isBlind ? { ...reader.reading(), truncated: false } : reader.reading()),
    get done() {
      return reader.done
    },
    get begun() {
      return reader.begun
    },
    get unread() {
      return isBlind || reader.unread
    },
  }
}
