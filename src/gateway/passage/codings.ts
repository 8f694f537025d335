/** Content codings that can be undone (RFC 9110 section 8.4.1). */
import type { Transform } from 'node:stream'
import * as zlib from 'node:zlib'
import {
  brotliDecompressSync,
  constants,
  createBrotliDecompress,
  createGunzip,
  createInflate,
  createInflateRaw,
  gunzipSync,
  inflateSync,
} from 'node:zlib'

export interface Coding {
  /** Decodes as bytes come; each piece is there as soon as it can be. */
  readonly stream: () => Transform
  /** The same; a truncated or damaged body is an error. `start`: the first bytes. */
  readonly strict: (start: Buffer) => Transform
  readonly whole: (bytes: Buffer, mostBytes: number) => Buffer
}

const flush = { flush: constants.Z_SYNC_FLUSH, finishFlush: constants.Z_SYNC_FLUSH }
const brotliFlush = {
  flush: constants.BROTLI_OPERATION_FLUSH,
  finishFlush: constants.BROTLI_OPERATION_FLUSH,
}

const gzip: Coding = {
  stream: () => createGunzip(flush),
  strict: () => createGunzip(),
  whole: (bytes, maxOutputLength) => gunzipSync(bytes, { ...flush, maxOutputLength }),
}

const codings: ReadonlyMap<string, Coding> = new Map([
  ['gzip', gzip],
  ['x-gzip', gzip],
  [
    'deflate',
    {
      stream: () => createInflate(flush),
      strict: (start) => (hasZlibHead(start) ? createInflate() : createInflateRaw()),
      whole: (bytes, maxOutputLength) => inflateSync(bytes, { ...flush, maxOutputLength }),
    },
  ],
  [
    'br',
    {
      stream: () => createBrotliDecompress(brotliFlush),
      strict: () => createBrotliDecompress(),
      whole: (bytes, maxOutputLength) => brotliDecompressSync(bytes, { ...brotliFlush, maxOutputLength }),
    },
  ],
  // Of Node 22.15 and later. Over HTTP a window has 8 MB at most (RFC 9659).
  ...('createZstdDecompress' in zlib
    ? [
        [
          'zstd',
          {
            stream: () => zlib.createZstdDecompress(),
            strict: () => zlib.createZstdDecompress({ params: { [constants.ZSTD_d_windowLogMax]: 23 } }),
            whole: (bytes: Buffer, maxOutputLength: number) =>
              zlib.zstdDecompressSync(bytes, { maxOutputLength }),
          },
        ] as const,
      ]
    : []),
])

/** Some clients say `deflate` and leave out its head. */
const hasZlibHead = (start: Buffer): boolean => start.length >= 2 && start.readUInt16BE(0) % 31 === 0

export const codingOf = (name: string): Coding | null => codings.get(name.trim().toLowerCase()) ?? null

/** As they are named to a client. */
export const knownCodings: ReadonlyArray<string> = [...codings.keys()].filter(
  (name) => !name.startsWith('x-'),
)

/** Codings on top of each other at most: more is nobody's body. */
const mostStacked = 4

/** The codings of a field in the order in which they were applied, without `identity`; null when one is unknown, or too many. */
export const codingsIn = (field: string | undefined): ReadonlyArray<Coding> | null => {
  const names = (field ?? '').split(',').map((name) => name.trim().toLowerCase())
  const stacked = names.filter((name) => name !== '' && name !== 'identity').map(codingOf)
  const known = stacked.filter((coding) => coding !== null)
  return known.length < stacked.length || known.length > mostStacked ? null : known
}
