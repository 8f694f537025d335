/**
 * The weight of text: the bytes of plain English that have as many tokens. Digits, other scripts and JSON's escapes have
 * more tokens for their bytes, or fewer. Of a long text evenly spread samples are weighed.
 */

/** Where text stands. */
export interface TextSpan {
  readonly start: number
  readonly end: number
}

/** Weight of a byte by its value, in bytes of plain text: four of them are a token. */
const weights = Float32Array.from({ length: 256 }, (_, byte) => {
  if (byte >= 0x30 && byte <= 0x39) return 1.6
  if (byte < 0x80) return 1
  // Of a character of several bytes the first counts for all: CJK is about a token a character, an emoji two.
  if (byte < 0xc0) return 0
  if (byte < 0xe0) return 2
  return byte < 0xf0 ? 3.6 : 8
})

const backslash = 0x5c
const letterU = 0x75
const escapeWeight = 1.6
const windowBytes = 1_024
const windows = 64

const escapedWeight = (code: number): number => {
  if (code >= 0xdc00 && code <= 0xdfff) return 0
  if (code >= 0xd800 && code <= 0xdbff) return 8
  if (code >= 0x2e80) return 3.6
  return code >= 0x80 ? 2 : 1
}

const weightOf = (body: Buffer, start: number, end: number): number => {
  let weight = 0
  let at = start
  while (at < end) {
    const byte = body[at] as number
    if (byte !== backslash) {
      weight += weights[byte] as number
      at += 1
    } else if (body[at + 1] === letterU) {
      weight += escapedWeight(Number.parseInt(body.toString('latin1', at + 2, at + 6), 16))
      at += 6
    } else {
      weight += escapeWeight
      at += 2
    }
  }
  return weight
}

/** Whole bytes of plain text, >= 0. */
export const textWeight = (body: Buffer, spans: ReadonlyArray<TextSpan>): number => {
  const total = spans.reduce((sum, { start, end }) => sum + end - start, 0)
  const every = total <= windows * windowBytes ? windowBytes : total / windows
  let [weighed, weight, next, before] = [0, 0, 0, 0]
  for (const { start, end } of spans) {
    const length = end - start
    if (every === windowBytes) {
      weight += weightOf(body, start, end)
      weighed += length
    }
    while (every !== windowBytes && next < before + length) {
      const from = start + Math.floor(next - before)
      const to = Math.min(end, from + windowBytes)
      weight += weightOf(body, from, to)
      weighed += to - from
      next += every
    }
    before += length
  }
  return weighed === 0 ? 0 : Math.round((weight / weighed) * total)
}
