/**
 * The first bytes of a success: whether they are an answer yet, or may still turn out to be a
 * refusal that calls itself a success. While they are held, nothing has reached the client.
 */
import type { BodyReader } from './body-reading.ts'
import type { BodyKind } from './reader.ts'

/** Longer than every refusal, bytes. */
const mostHeldBytes = 65_536

/** `pass`: it is an answer. `hold`: nobody can say yet. */
export type Opening = 'pass' | 'hold'

/** The part of an answer that has come and is held. */
export interface HeldStart {
  readonly bytes: number
  /** Its first chunk. */
  readonly first: Buffer
  /** All of it in one piece: made only where it has to be looked through. */
  readonly whole: () => Buffer
}

const firstLetter = (bytes: Buffer): number | undefined => bytes.find((byte) => byte > 0x20)
const openBrace = 0x7b
const openBracket = 0x5b
const colon = 0x3a

/** Decides about an answer of which `start` has come so far. */
export const openingOf = (
  kind: BodyKind,
  reader: BodyReader,
  isEncoded: boolean,
  start: HeldStart,
): Opening => {
  if (start.bytes > mostHeldBytes || kind === 'other') return 'pass'
  const byte = isEncoded ? undefined : firstLetter(start.first)
  // Blanks keep a connection alive while the model works, and comments do: the client should see them.
  if (!isEncoded && (byte === undefined || (kind === 'events' && byte === colon))) return 'pass'
  switch (kind) {
    case 'json':
      if (isEncoded || byte === openBrace) return 'hold'
      return byte === openBracket && !hasElement(start.whole()) ? 'hold' : 'pass'
    default:
      // An encoded answer is read a moment after it comes; a stream must not wait for that.
      return isEncoded || reader.begun ? 'pass' : 'hold'
  }
}

/** The first element of the array that begins here is complete. */
const hasElement = (array: Buffer): boolean => {
  let depth = 0
  let inText = false
  for (let at = 0; at < array.length; at += 1) {
    const byte = array[at]
    if (inText) {
      if (byte === 0x5c) at += 1
      else if (byte === 0x22) inText = false
    } else if (byte === 0x22) inText = true
    else if (byte === openBrace || byte === openBracket) depth += 1
    else if (byte === 0x7d || byte === 0x5d) {
      depth -= 1
      if (depth <= 1) return true
    }
  }
  return false
}
