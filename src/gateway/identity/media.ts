/**
 * Tokens of images, documents and recordings, by the rules that providers publish: never by their bytes as text. They are
 * estimates for a limit, so a rule that depends on the model is taken at its usual value.
 */
import { imageSize } from 'image-size'
import type { Wire } from '../answers/wire.ts'

export type MediaKind = 'image' | 'document' | 'audio' | 'video' | 'unknown'

/** What is neither image, document nor recording, or cannot be measured: the most that Anthropic counts for an image. */
export const unknownMediaTokens = 1_600

/** Tokens of a page of a document: its text and, on Anthropic's wire, its picture. */
const pageTokens: Readonly<Record<Wire, number>> = {
  anthropic: 3_000,
  openai: 1_500,
  gemini: 258,
  other: 1_500,
}
/** Tokens of a second. */
const audioTokens: Readonly<Record<Wire, number>> = { anthropic: 32, openai: 10, gemini: 32, other: 32 }
const videoTokens = 263
/** Usual bytes of a page whose document does not say how many it has, and of a second. */
const bytesOfPage = 50_000
const bytesOfSecond = { mp3: 16_000, audio: 8_000, video: 250_000 }

/** Texts at their offsets, as Latin-1, that all stand in a head of the kind; the first that fits counts. */
const starts: ReadonlyArray<readonly [MediaKind, ...ReadonlyArray<readonly [at: number, text: string]>]> = [
  ['image', [0, '\x89PNG']],
  ['image', [0, '\xff\xd8\xff']],
  ['image', [0, 'GIF8']],
  ['image', [0, 'RIFF'], [8, 'WEBP']],
  ['image', [0, 'BM'], [6, '\0\0\0\0']],
  ['image', [0, 'II*\0']],
  ['image', [0, 'MM\0*']],
  ['document', [0, '%PDF-']],
  ['audio', [0, 'RIFF'], [8, 'WAVE']],
  ['audio', [0, 'ID3']],
  ['audio', [0, '\xff\xfb']],
  ['audio', [0, '\xff\xf3']],
  ['audio', [0, '\xff\xf1']],
  ['audio', [0, 'OggS']],
  ['audio', [0, 'fLaC']],
  ['audio', [4, 'ftypM4A']],
  ['video', [4, 'ftyp']],
  ['video', [0, '\x1aE\xdf\xa3']],
  ['unknown', [0, 'PK\x03\x04']],
]

/** By its first bytes; null for what begins as none of them. */
export const kindOfMedia = (head: Buffer): MediaKind | null => {
  const beginning = head.toString('latin1', 0, 16)
  const found = starts.find(([, ...marks]) => marks.every(([at, text]) => beginning.startsWith(text, at)))
  return found?.[0] ?? null
}

/** `head` is its beginning, or all of it; `bytes` its whole length. */
export const tokensOfMedia = (kind: MediaKind, head: Buffer, bytes: number, wire: Wire): number => {
  if (kind === 'image') return tokensOfImage(head, wire)
  if (kind === 'document') return pagesIn(head, bytes) * pageTokens[wire]
  if (kind === 'audio') return Math.ceil(secondsOf(head, bytes) * audioTokens[wire])
  if (kind === 'video') return Math.ceil((bytes / bytesOfSecond.video) * videoTokens)
  return unknownMediaTokens
}

const tokensOfImage = (head: Buffer, wire: Wire): number => {
  try {
    const { width, height } = imageSize(head)
    if (!(width > 0 && height > 0)) return unknownMediaTokens
    return imageRules[wire](width, height)
  } catch {
    return unknownMediaTokens
  }
}

type ImageRule = (width: number, height: number) => number

/** Pixels / 750, after the longer side is brought to 1,568; at most 1,600. */
const byPixels: ImageRule = (width, height) => {
  const scale = Math.min(1, 1_568 / Math.max(width, height))
  return Math.min(unknownMediaTokens, Math.ceil((width * scale * height * scale) / 750))
}

/** 85, and 170 for each tile of 512, after the image is brought into 2,048 and its shorter side to 768. */
const byTiles: ImageRule = (width, height) => {
  const fitted = Math.min(1, 2_048 / Math.max(width, height))
  const scale = fitted * Math.min(1, 768 / (Math.min(width, height) * fitted))
  const tiles = (side: number): number => Math.max(1, Math.ceil((side * scale) / 512))
  return 85 + 170 * tiles(width) * tiles(height)
}

/** 258 up to 384 on both sides; else for each tile of 768. */
const byLargeTiles: ImageRule = (width, height) =>
  width <= 384 && height <= 384 ? 258 : 258 * Math.min(16, Math.ceil(width / 768) * Math.ceil(height / 768))

const imageRules: Readonly<Record<Wire, ImageRule>> = {
  anthropic: byPixels,
  openai: byTiles,
  gemini: byLargeTiles,
  other: byTiles,
}

/** The pages that a PDF lists in the open; where it lists none, by its size. */
const pagesIn = (head: Buffer, bytes: number): number => {
  const listed = head.toString('latin1').match(/\/Type\s*\/Page(?![a-zA-Z])/g)?.length ?? 0
  return listed > 0 ? listed : Math.max(1, Math.ceil(bytes / bytesOfPage))
}

const secondsOf = (head: Buffer, bytes: number): number => {
  const isWave = head.toString('latin1', 8, 12) === 'WAVE' && head.length >= 32
  const stated = isWave ? head.readUInt32LE(28) : 0
  if (stated >= 1_000) return bytes / stated
  return (
    bytes / (/^(?:ID3|\xff)/.test(head.toString('latin1', 0, 3)) ? bytesOfSecond.mp3 : bytesOfSecond.audio)
  )
}
