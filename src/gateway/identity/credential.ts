/** The account that pays, as a keyed fingerprint of the client's key. The key itself is passed through and never kept. */
import { randomBytes } from 'node:crypto'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import type { IncomingHttpHeaders } from 'node:http'
import { InvalidInput } from '../../../machines/index.ts'

const single = (value: string | ReadonlyArray<string> | undefined): string | undefined =>
  typeof value === 'string' && value !== '' ? value : undefined

/**
 * The key of a request: `x-api-key`, `authorization` (the token of `Bearer`, the access key of an
 * AWS signature, which changes with every request, or the whole value), `api-key`,
 * `x-goog-api-key`, or Gemini's `key` parameter. Empty when there is none.
 */
export const keyOf = (headers: IncomingHttpHeaders, query: string): string =>
  single(headers['x-api-key']) ??
  tokenIn(single(headers['authorization'])) ??
  single(headers['api-key']) ??
  single(headers['x-goog-api-key']) ??
  (query === '' ? '' : (new URLSearchParams(query).get('key') ?? ''))

const tokenIn = (authorization: string | undefined): string | undefined =>
  authorization === undefined
    ? undefined
    : (/^Bearer\s+(\S.*)$/i.exec(authorization)?.[1] ??
      /^AWS4-\S+ .*Credential=([^/,\s]+)/.exec(authorization)?.[1] ??
      authorization)

/** Characters of a secret. */
const secretLength = 64

/**
 * The secret of this installation, drawn at the first start and kept beside the journal, readable
 * by its owner only: fingerprints in the journal are useless without it. `:memory:` draws one that
 * ends with the process. Throws `InvalidInput` when the file holds something else.
 */
export const installationSecret = (journalPath: string): string => {
  const drawn = randomBytes(secretLength / 2).toString('hex')
  if (journalPath === ':memory:') return drawn
  const path = `${journalPath}.secret`
  try {
    writeFileSync(path, drawn, { flag: 'wx', mode: 0o600 })
    return drawn
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
  }
  return checked(path, readFileSync(path, 'utf8').trim())
}

/** The secret that stands beside the journal; null when there is none. Makes no file. Throws as `installationSecret`. */
export const keptSecret = (journalPath: string): string | null => {
  const path = `${journalPath}.secret`
  return existsSync(path) ? checked(path, readFileSync(path, 'utf8').trim()) : null
}

const checked = (path: string, kept: string): string => {
  if (/^[0-9a-f]{64}$/.test(kept)) return kept
  throw new InvalidInput([
    {
      field: path,
      expected: `${secretLength} hexadecimal digits; remove the file to draw new ones`,
      got: `${kept.length} characters`,
    },
  ])
}
