/**
 * Which requests are calls, and to which model. The body is not parsed: its top level is walked
 * until `model` is met, which SDKs write first, and strings are skipped by native search.
 */

const quote = 0x22
const backslash = 0x5c
const comma = 0x2c
const colon = 0x3a
const openBrace = 0x7b
const closeBrace = 0x7d
const openBracket = 0x5b
const closeBracket = 0x5d

/** Generating paths that name the model themselves: Gemini, Azure OpenAI, Bedrock. */
const generatingPaths: ReadonlyArray<RegExp> = [
  /\/models\/([^/:?]+):(?:generateContent|streamGenerateContent|embedContent|batchEmbedContents|predict|streamRawPredict|rawPredict)$/,
  /\/deployments\/([^/?]+)\/(?:chat\/completions|completions|embeddings|responses)$/,
  /\/model\/([^/?]+)\/(?:converse|converse-stream|invoke|invoke-with-response-stream)$/,
]

/** Paths that take a `model` and generate nothing. */
const countingPaths = /(?:\/count_tokens|\/input_tokens|:countTokens|\/fine_tuning\/jobs|\/assistants)$/

/** The model that a POST asks to work, or null when it is no call and needs no admission. `path` is without its query. */
export const modelOf = (path: string, body: Buffer): string | null => {
  if (countingPaths.test(path)) return null
  for (const pattern of generatingPaths) {
    const named = pattern.exec(path)?.[1]
    if (named !== undefined) return decoded(named)
  }
  return modelIn(body)
}

const decoded = (segment: string): string => {
  try {
    return decodeURIComponent(segment)
  } catch {
    return segment
  }
}

/** The text of the first top-level `model` member. Null when there is none, it is no text, or the bytes are no object. */
export const modelIn = (body: Buffer): string | null => textMember(body, 'model')

/** The text of the first top-level member `name`; null when there is none, or it is no text. */
export const textMember = (body: Buffer, name: string): string | null => {
  const valueAt = memberAt(body, name)
  return valueAt === null ? null : textAt(body, valueAt)
}

/** Where the value of the first top-level member `name` begins; null when there is none or the bytes are no object. */
export const memberAt = (body: Buffer, name: string): number | null =>
  membersAt(body, [name]).get(name) ?? null

/** Where the values of these top-level members begin, of each the first. Walks the object once, until all are met. */
export const membersAt = (body: Buffer, names: ReadonlyArray<string>): ReadonlyMap<string, number> => {
  const found = new Map<string, number>()
  const wanted = new Map(names.map((name) => [JSON.stringify(name), name]))
  const start = body[0] === 0xef && body[1] === 0xbb && body[2] === 0xbf ? 3 : 0
  let at = skipBlanks(body, start)
  if (body[at] !== openBrace) return found
  at = skipBlanks(body, at + 1)
  while (body[at] === quote) {
    const keyEnds = stringEnd(body, at)
    const colonAt = skipBlanks(body, keyEnds)
    if (keyEnds < 0 || body[colonAt] !== colon) return found
    const valueAt = skipBlanks(body, colonAt + 1)
    const key = body.toString('latin1', at, keyEnds)
    const name = wanted.get(key)
    if (name !== undefined) {
      found.set(name, valueAt)
      wanted.delete(key)
      if (wanted.size === 0) return found
    }
    at = skipBlanks(body, valueEnd(body, valueAt))
    if (body[at] !== comma) return found
    at = skipBlanks(body, at + 1)
  }
  return found
}

const textAt = (body: Buffer, at: number): string | null => {
  if (body[at] !== quote) return null
  const end = stringEnd(body, at)
  try {
    const text: unknown = JSON.parse(body.toString('utf8', at, end))
    return typeof text === 'string' ? text : null
  } catch {
    return null
  }
}

const skipBlanks = (body: Buffer, from: number): number => {
  let at = from
  while (body[at] === 0x20 || body[at] === 0x0a || body[at] === 0x0d || body[at] === 0x09) at += 1
  return at
}

/** Index behind the string that opens at `at`; -1 when it does not end. */
const stringEnd = (body: Buffer, at: number): number => {
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
