/**
 * Reads an object or array literal out of the middle of a text: JSON, or the repr that Python logs print. It
 * accepts the changes that logs make to JSON (single quotes, `None`, prose after it, a cut-off end). At a
 * character that it cannot read, it returns the part read so far.
 */

export interface Literal {
  readonly value: unknown
  /** Index of the first character after the literal. */
  readonly endsAt: number
}

interface Cursor {
  readonly text: string
  at: number
  nodes: number
  /** Set at the end of the text or of the budget: every level then returns the part that it has read. */
  stopped: boolean
}

const depthCap = 40
const nodeCap = 4000

const words: ReadonlyMap<string, unknown> = new Map<string, unknown>([
  ['true', true],
  ['True', true],
  ['false', false],
  ['False', false],
  ['null', null],
  ['None', null],
  ['undefined', null],
  ['NaN', null],
])

const escapes: ReadonlyMap<string, string> = new Map([
  ['n', '\n'],
  ['t', '\t'],
  ['r', '\r'],
  ['b', '\b'],
  ['f', '\f'],
])

/** The literal that begins at `startsAt` with `{` or `[`; null when that brace begins no literal. */
export const readLiteral = (text: string, startsAt: number): Literal | null => {
  const cursor: Cursor = { text, at: startsAt, nodes: 0, stopped: false }
  const value = text[startsAt] === '{' ? readObject(cursor, 0) : readArray(cursor, 0)
  return value === null ? null : { value, endsAt: cursor.at }
}

const readObject = (cursor: Cursor, depth: number): Record<string, unknown> | null => {
  cursor.at += 1
  const object: Record<string, unknown> = Object.create(null)
  for (let first = true; !cursor.stopped; first = false) {
    skipSpace(cursor)
    if (cursor.text[cursor.at] === '}') {
      cursor.at += 1
      return object
    }
    const key = readString(cursor)
    if (key === null || !skipOver(cursor, ':')) return abandon(cursor, first ? null : object)
    object[key] = readValue(cursor, depth + 1)
    skipOver(cursor, ',')
  }
  return object
}

const readArray = (cursor: Cursor, depth: number): unknown[] => {
  cursor.at += 1
  const array: unknown[] = []
  while (!cursor.stopped) {
    skipSpace(cursor)
    const next = cursor.text[cursor.at]
    if (next === ']' || next === ')') {
      cursor.at += 1
      return array
    }
    array.push(readValue(cursor, depth + 1))
    skipOver(cursor, ',')
  }
  return array
}

const readValue = (cursor: Cursor, depth: number): unknown => {
  skipSpace(cursor)
  cursor.nodes += 1
  if (depth > depthCap || cursor.nodes > nodeCap) return abandon(cursor, null)
  const next = cursor.text[cursor.at]
  if (next === undefined) return abandon(cursor, null)
  if (next === '{') return readObject(cursor, depth)
  if (next === '[' || next === '(') return readArray(cursor, depth)
  const string = readString(cursor)
  return string === null ? readWord(cursor) : string
}

/**
 * A quoted string, with or without Python's `b` or `u` before it. Null, without moving, when no string begins
 * here.
 */
const readString = (cursor: Cursor): string | null => {
  const { text } = cursor
  const prefixed = /[bur]/.test(text[cursor.at] ?? '') && /['"]/.test(text[cursor.at + 1] ?? '')
  const opensAt = cursor.at + (prefixed ? 1 : 0)
  const quote = text[opensAt]
  if (quote !== '"' && quote !== "'") return null
  let value = ''
  let from = opensAt + 1
  for (let at = from; at < text.length; at++) {
    const char = text[at]
    if (char === quote) {
      cursor.at = at + 1
      return value + text.slice(from, at)
    }
    if (char !== '\\') continue
    value += text.slice(from, at)
    const hex = /^(?:u[\da-fA-F]{4}|x[\da-fA-F]{2})/.exec(text.slice(at + 1, at + 6))?.[0]
    const escaped = text[at + 1] ?? ''
    value += hex ? String.fromCharCode(Number.parseInt(hex.slice(1), 16)) : (escapes.get(escaped) ?? escaped)
    at += hex ? hex.length : 1
    from = at + 1
  }
  cursor.at = text.length
  cursor.stopped = true
  return value + text.slice(from)
}

/** A number or a bare word up to the next delimiter. An unknown word stays a string. */
const readWord = (cursor: Cursor): unknown => {
  const word = /^[^,}\])\n]{1,80}/.exec(cursor.text.slice(cursor.at, cursor.at + 80))?.[0]?.trim() ?? ''
  if (word === '') return abandon(cursor, null)
  cursor.at += word.length
  if (words.has(word)) return words.get(word)
  return /^-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?$/.test(word) ? Number(word) : word
}

/** Space, and the `\n` that a repr of bytes spells out between tokens. */
const skipSpace = (cursor: Cursor): void => {
  const { text } = cursor
  for (;;) {
    const char = text[cursor.at]
    if (char === ' ' || char === '\n' || char === '\t' || char === '\r') cursor.at += 1
    else if (char === '\\' && /[nrt]/.test(text[cursor.at + 1] ?? '')) cursor.at += 2
    else break
  }
  if (cursor.at >= text.length) cursor.stopped = true
}

const skipOver = (cursor: Cursor, char: string): boolean => {
  skipSpace(cursor)
  if (cursor.text[cursor.at] !== char) return false
  cursor.at += 1
  return true
}

const abandon = <Value>(cursor: Cursor, value: Value): Value => {
  cursor.stopped = true
  return value
}
