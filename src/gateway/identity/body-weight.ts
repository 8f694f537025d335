/** What a body weighs before its provider has counted it: its text, and the media in it apart. */
import type { Wire } from '../answers/wire.ts'
import { boundaryIn, formParts } from '../passage/form-parts.ts'
import type { EstimateRule } from '../routing/route-rows.ts'
import { kindOfMedia, type MediaKind, tokensOfMedia, unknownMediaTokens } from './media.ts'
import { type TextSpan, textWeight } from './text-weight.ts'

export interface BodyWeight {
  /** Bytes of plain text with as many tokens as its text has. */
  readonly textBytes: number
  /** Tokens of its images, documents and recordings. */
  readonly mediaTokens: number
}

export interface WeighedBody {
  /** Without its encoding; of an upload, what has arrived. */
  readonly body: Buffer
  /** Of all of it. Default: all has arrived. */
  readonly totalBytes?: number
  readonly wire: Wire
  readonly rule: EstimateRule
  readonly contentType: string
}

export const weigh = ({
  body,
  totalBytes = body.byteLength,
  wire,
  rule,
  contentType,
}: WeighedBody): BodyWeight => {
  if (rule === 'media')
    return { textBytes: 0, mediaTokens: mediaAt(body, totalBytes, wire) ?? unknownMediaTokens }
  const boundary = rule === 'form' || /^\s*multipart\//i.test(contentType) ? boundaryIn(contentType) : null
  return boundary === null ? weighJson(body, wire) : weighForm(body, totalBytes, boundary, wire)
}

/** The wire whose rules count for a provider that is known by its name. */
export const wireOfProvider = (provider: string): Wire => {
  if (/anthropic|claude/i.test(provider)) return 'anthropic'
  return /gemini|google|vertex/i.test(provider) ? 'gemini' : 'openai'
}

/** Tokens of media of this size that begin with `bytes`; null for what is none. */
const mediaAt = (bytes: Buffer, sizeBytes: number, wire: Wire): number | null => {
  const kind = kindOfMedia(bytes)
  return kind === null ? null : tokensOfMedia(kind, bytes.subarray(0, mostDecoded[kind]), sizeBytes, wire)
}

const weighForm = (body: Buffer, totalBytes: number, boundary: string, wire: Wire): BodyWeight => {
  const spans: Array<TextSpan> = []
  let mediaTokens = 0
  for (const part of formParts(body, boundary, totalBytes)) {
    const [bytes, sizeBytes] = [body.subarray(part.start, part.end), part.end - part.start]
    if (part.isFile) mediaTokens += mediaAt(bytes, sizeBytes, wire) ?? unknownMediaTokens
    else if (part.end <= body.byteLength) spans.push(part)
  }
  return { textBytes: textWeight(body, spans), mediaTokens }
}

const quote = 0x22
/** Characters without a blank that no text has in a row, by which base64 is met; and how often it is looked for. */
const runLength = 64
const lookEvery = 1_024
const isBase64 = Uint8Array.from({ length: 256 }, (_, byte) =>
  /[A-Za-z0-9+/_=\\-]/.test(String.fromCharCode(byte)) ? 1 : 0,
)
/** How much of each kind is decoded, bytes: enough for what is read of it. */
const mostDecoded: Readonly<Record<MediaKind, number>> = {
  image: 192 * 1_024,
  document: 12 * 1_024 * 1_024,
  audio: 64,
  video: 64,
  unknown: 64,
}

const isRun = (body: Buffer, at: number): boolean => {
  for (let index = at; index < at + runLength; index += 1)
    if (isBase64[body[index] as number] !== 1) return false
  return true
}

/** JSON, or anything else that is text: members that hold media in base64 are found by a run of its characters. */
const weighJson = (body: Buffer, wire: Wire): BodyWeight => {
  const spans: Array<TextSpan> = []
  let mediaTokens = 0
  let [start, at] = [0, 0]
  while (at + runLength <= body.length) {
    if (!isRun(body, at)) {
      at += lookEvery
      continue
    }
    const opens = body.lastIndexOf(quote, at)
    const found = body.indexOf(quote, at)
    const closes = found < 0 ? body.length : found
    const tokens = tokensOfBase64(body, opens + 1, closes, wire)
    if (tokens !== null) {
      spans.push({ start, end: Math.max(start, opens + 1) })
      start = closes
      mediaTokens += tokens
    }
    at = Math.max(closes, at + lookEvery)
  }
  spans.push({ start, end: body.length })
  return { textBytes: textWeight(body, spans), mediaTokens }
}

const dataUri = /^data:[^,;]{0,100}(?:;[^,;]{0,100}){0,4};base64,/

/** Null for what is no media: a signature, or an encrypted thought, which a model reads as it reads text. */
const tokensOfBase64 = (body: Buffer, from: number, to: number, wire: Wire): number | null => {
  const prefix = dataUri.exec(
    body.toString('latin1', from, Math.min(to, from + 512)).replaceAll('\\/', '/'),
  )?.[0]
  const escapes =
    prefix === undefined
      ? 0
      : body
          .toString('latin1', from, from + 512)
          .split(',')[0]
          ?.split('\\').length
  const start = from + (prefix === undefined ? 0 : prefix.length + (escapes ?? 1) - 1)
  const decoded = (most: number): Buffer =>
    Buffer.from(body.toString('latin1', start, Math.min(to, start + Math.ceil(most / 3) * 4)), 'base64')
  const kind = kindOfMedia(decoded(64))
  if (kind === null) return prefix === undefined ? null : unknownMediaTokens
  return tokensOfMedia(kind, decoded(mostDecoded[kind]), Math.floor(((to - start) * 3) / 4), wire)
}
