/**
 * The top-level members of a JSON object in bytes, as a JSON parser would find them: names without their escapes,
 * and of two members of one name the last. Values are not parsed; strings are skipped by native search.
 */

const quote = 0x22
const backslash = 0x5c
const comma = 0x2c
const colon = 0x3a
const openBrace = 0x7b
const closeBrace = 0x7d
const openBracket = 0x5b
const closeBracket = 0x5d

/** Where a value stands: `start` is its first byte, `end` the first behind it. */
export interface Span {
  readonly start: number
  readonly end: number
}

/** No API has as many; more are not remembered. */
const mostMembers = 1_024
/** No name of a member that is looked for is as long, escapes included. */
const longestName = 512

/** One request is asked for several of its members: its body is walked once. Bodies are never changed. */
const walked = new WeakMap<Buffer, ReadonlyMap<string, Span>>()

/** All of them. Empty when the bytes are no object; of an object that breaks off, those before. */
export const membersOf = (body: Buffer): ReadonlyMap<string, Span> => {
  const known = walked.get(body)
  if (known !== undefined) return known
  const found = walk(body)
  walked.set(body, found)
  return found
}

const walk = (body: Buffer): ReadonlyMap<string, Span> => {
  const found = new Map<string, Span>()
  const begin = body[0] === 0xef && body[1] === 0xbb && body[2] === 0xbf ? 3 : 0
  let at = skipBlanks(body, begin)
  if (body[at] !== openBrace) return found
  at = skipBlanks(body, at + 1)
  while (body[at] === quote) {
    const nameEnds = stringEnd(body, at)
    const colonAt = skipBlanks(body, nameEnds)
    if (nameEnds < 0 || body[colonAt] !== colon) return found
    const start = skipBlanks(body, colonAt + 1)
    const end = valueEnd(body, start)
    const name = nameEnds - at > longestName ? null : textIn(body, { start: at, end: nameEnds })
    if (name !== null && (found.size < mostMembers || found.has(name))) found.set(name, { start, end })
    at = skipBlanks(body, end)
    if (body[at] !== comma) return found
    at = skipBlanks(body, at + 1)
  }
  return found
}

/** The text of the top-level member `name`; null when there is none, or it is no text. */
export const textMember = (body: Buffer, name: string): string | null => {
  const span = membersOf(body).get(name)
  return span === undefined ? null : textIn(body, span)
}

/** Where the value of the top-level member `name` begins; null when there is none or the bytes are no object. */
export const memberAt = (body: Buffer, name: string): number | null =>
  membersOf(body).get(name)?.start ?? null

/** Largest value that is parsed for its parts, bytes. */
const longestValue = 64 * 1024

/** The parsed value of the top-level member `name`; undefined when there is none, it is no JSON, or longer than 64 KiB. */
export const memberValue = (body: Buffer, name: string): unknown => {
  const span = membersOf(body).get(name)
  if (span === undefined || span.end - span.start > longestValue) return undefined
  return parsedOr(body.toString('utf8', span.start, span.end))
}

/** Undefined for what is no JSON. */
export const parsedOr = (text: string): unknown => {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

const textIn = (body: Buffer, { start, end }: Span): string | null => {
  if (body[start] !== quote || body[end - 1] !== quote || end - start < 2) return null
  const text = parsedOr(body.toString('utf8', start, end))
  return typeof text === 'string' ? text : null
}

const skipBlanks = (body: Buffer, from: number): number => {
  let at = from
  while (body[at] === 0x20 || body[at] === 0x0a || body[at] === 0x0d || body[at] === 0x09) at += 1
  return at
}

/** Strings up to this length are walked, bytes: a native search costs more than they do. */
const shortString = 64

/** Index behind the string that opens at `at`; -1 when it does not end. */
const stringEnd = (body: Buffer, at: number): number => {
  for (let near = at + 1; near <= at + shortString; near += 1) {
    const byte = body[near]
    if (byte === quote) return near + 1
    if (byte === backslash) near += 1
  }
  let end = body.indexOf(quote, at + 1)
  while (end > 0) {
    let slashes = 0
    while (body[end - 1 - slashes] === backslash) slashes += 1
    if (slashes % 2 === 0) return end + 1
    end = body.indexOf(quote, end + 1)
  }
  return -1
}

/** Index behind the value that begins at `at`; the body's length when it does not end. */
const valueEnd = (body: Buffer, at: number): number => {
  const first = body[at]
  if (first === quote) return ended(body, stringEnd(body, at))
  if (first === openBrace || first === openBracket) return containerEnd(body, at)
  let end = at
  while (end < body.length && body[end] !== comma && body[end] !== closeBrace) end += 1
  return end
}

const ended = (body: Buffer, end: number): number => (end < 0 ? body.length : end)

const containerEnd = (body: Buffer, from: number): number => {
  let depth = 0
  let at = from
  while (at < body.length) {
    const byte = body[at]
    if (byte === quote) {
      at = ended(body, stringEnd(body, at))
      continue
    }
    at += 1
    if (byte === openBrace || byte === openBracket) depth += 1
    else if (byte === closeBrace || byte === closeBracket) {
      depth -= 1
      if (depth === 0) return at
    }
  }
  return at
}
