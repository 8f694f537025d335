/**
 * The rate-limit headers of every provider, on served and refused answers alike. One grammar reads them:
 * a known prefix, one of `limit`, `remaining`, `reset`, and words for the noun and the window in any order.
 */

import {
  epochMsOf,
  leastEpochSeconds,
  parseDecimal,
  parseDurationMs,
  parseInstantMs,
  wholeMs,
} from './duration.ts'
import { type Family, familyOf } from './family.ts'
import { headerMap } from './header-map.ts'

export type LimitDimension =
  | 'requests-per-minute'
  | 'requests-per-day'
  | 'tokens-per-minute'
  | 'tokens-per-day'
  | 'input-tokens-per-minute'
  | 'output-tokens-per-minute'
  /** Shared by every model of one project. */
  | 'project-requests-per-minute'
  | 'project-tokens-per-minute'
  /** The header names neither noun nor window. */
  | 'unstated'
  /**
   * The noun and window are stated, but have no name of their own here: a priority tier, a month, a
   * subscription window.
   */
  | `other-${string}`

export interface Limit {
  readonly dimension: LimitDimension
  /** Ceiling of the window; null when not stated or when the provider sent its sentinel -1. */
  readonly limit: number | null
  /** Left in the window. Below zero when the provider reports a debt; null as for `limit`. */
  readonly remaining: number | null
  /** Epoch ms at which the window is whole again; null when not stated. */
  readonly resetAtMs: number | null
}

/** As `Limit`, with a relative reset kept apart so that no clock is needed. */
export interface LimitReading extends Limit {
  readonly resetAfterMs: number | null
  /** The provider sent -1 for "unknown"; its reset then means nothing either. */
  readonly sentinel: boolean
}

const prefixes = [
  ['anthropic-ratelimit-', ''],
  ['anthropic-priority-', 'priority'],
  ['anthropic-fast-', 'fast'],
  ['x-ratelimitbysize-', 'tokens'],
  ['ratelimitbysize-', 'tokens'],
  ['x-tokenlimit-', 'tokens'],
  ['x-ratelimit-', ''],
  ['x-rate-limit-', ''],
  ['ratelimit-', ''],
] as const

interface Draft {
  readonly subject: string
  /** Headers of which one word alone would find a wrong partner; they keep a prefix of their own. */
  readonly prefix: string
  limit?: string
  remaining?: string
  reset?: string
}

/** Limits stated in the headers, one per window. Relative resets count from `receivedAtMs`. */
export const readLimits = (
  provider: string,
  headers: Parameters<typeof headerMap>[0],
  receivedAtMs: number,
): ReadonlyArray<Limit> => {
  const read = headerMap(headers)
  const aheadMs = (providerReceiptMs(receivedAtMs, read) ?? receivedAtMs) - receivedAtMs
  return readLimitReadings(familyOf(provider), read).map((reading) => ({
    dimension: reading.dimension,
    limit: reading.limit,
    remaining: reading.remaining,
    resetAtMs:
      reading.resetAtMs === null
        ? reading.resetAfterMs === null
          ? null
          : receivedAtMs + reading.resetAfterMs
        : reading.resetAtMs - aheadMs,
  }))
}

/** An answer's `date` further from the clock than this is a cache's, or of a provider that lives at another time. */
const dateTrustMs = 24 * 3_600_000
/** `Date` counts whole seconds: a difference within them says nothing. */
const dateGrainMs = 1_000

/**
 * The time of receipt by the provider's own clock, epoch ms: the answer's `date` where it has one, since the
 * times that it states are of that clock. `receivedAtMs` by this host's clock, or null when that is not known.
 */
export const providerReceiptMs = (
  receivedAtMs: number | null,
  headers: ReadonlyMap<string, string>,
): number | null => {
  const dateMs = parseInstantMs(headers.get('date') ?? '')
  if (dateMs === null || receivedAtMs === null) return receivedAtMs ?? dateMs
  const aheadMs = dateMs - receivedAtMs
  const believed = Math.abs(aheadMs) <= dateTrustMs && !(aheadMs > -dateGrainMs && aheadMs <= 0)
  return believed ? dateMs : receivedAtMs
}

export const readLimitReadings = (
  declared: Family | null,
  headers: ReadonlyMap<string, string>,
): ReadonlyArray<LimitReading> => {
  // Groq's `requests` windows are days, through any relay.
  const family = headers.has('x-groq-region') ? 'groq' : declared
  const drafts = new Map<string, Draft>()
  for (const [name, value] of headers) addHeader(drafts, name, value)
  const tokensReset = drafts.get('x-ratelimit-/')?.reset
  const readings = [...drafts.values()].map((draft) => {
    const shared = draft.prefix === 'x-tokenlimit-' ? tokensReset : undefined
    return readingOf(dimensionOf(draft.subject, family), draft.limit, draft.remaining, draft.reset ?? shared)
  })
  return [...readings, ...structuredReadings(headers)].filter(saysAnything)
}

const addHeader = (drafts: Map<string, Draft>, name: string, value: string): void => {
  const found = prefixes.find(([prefix]) => name.startsWith(prefix))
  if (found === undefined) return
  const [prefix, noun] = found
  const words = name.slice(prefix.length).split('-')
  const kind = words.find((word) => word === 'limit' || word === 'remaining' || word === 'reset')
  if (kind === undefined) return
  const subject = [noun, ...words.filter((word) => word !== kind)].filter((word) => word !== '').join('-')
  // Azure writes one header with an extra hyphen; its partner headers have the usual spelling.
  const group = prefix === 'x-rate-limit-' ? 'x-ratelimit-' : prefix
  const key = `${group}/${subject}`
  const draft = drafts.get(key) ?? { subject, prefix: group }
  draft[kind] = value
  drafts.set(key, draft)
}

const saysAnything = ({ limit, remaining, resetAtMs, resetAfterMs, sentinel }: LimitReading): boolean => {
  return sentinel || [limit, remaining, resetAtMs, resetAfterMs].some((value) => value !== null)
}

const nouns: ReadonlyMap<string, string> = new Map([
  ['requests', 'requests'],
  ['request', 'requests'],
  ['req', 'requests'],
  ['tokens', 'tokens'],
  ['token', 'tokens'],
])
const windows: ReadonlyMap<string, string> = new Map([
  ['minute', 'minute'],
  ['min', 'minute'],
  ['1m', 'minute'],
  ['day', 'day'],
  ['1d', 'day'],
])
const sides: ReadonlyMap<string, string> = new Map([
  ['input', 'input-'],
  ['prompt', 'input-'],
  ['output', 'output-'],
  ['generated', 'output-'],
  ['completion', 'output-'],
])

const dimensionOf = (subject: string, family: Family | null): LimitDimension => {
  // Together states queries without a noun, and states tokens under another prefix.
  if (subject === '') return family === 'together' ? 'requests-per-minute' : 'unstated'
  let noun = ''
  let side = ''
  let window = ''
  let project = ''
  for (const word of subject.split('-')) {
    if (nouns.has(word)) noun = nouns.get(word) ?? ''
    else if (sides.has(word)) side = sides.get(word) ?? ''
    else if (windows.has(word)) window = windows.get(word) ?? ''
    else if (word === 'project') project = 'project-'
    else return `other-${subject}`
  }
  if (noun === '' && side !== '') noun = 'tokens'
  if (noun === '') return `other-${subject}`
  if (window === '') window = family === 'groq' && noun === 'requests' ? 'day' : 'minute'
  const sided = noun === 'tokens' && window === 'minute' && project === '' ? side : ''
  const dimension = `${project}${sided}${noun}-per-${window}`
  return project !== '' && window === 'day' ? `other-${dimension}` : (dimension as LimitDimension)
}

const readingOf = (
  dimension: LimitDimension,
  limit: string | undefined,
  remaining: string | undefined,
  reset: string | undefined,
): LimitReading => {
  const stated = { limit: leadingNumber(limit), remaining: leadingNumber(remaining) }
  const resetTime = reset === undefined ? null : parseReset(reset)
  return {
    dimension,
    limit: stated.limit !== null && stated.limit < 0 ? null : stated.limit,
    remaining: stated.remaining === -1 ? null : stated.remaining,
    resetAtMs: resetTime?.atMs ?? null,
    resetAfterMs: resetTime?.afterMs ?? null,
    sentinel: stated.limit === -1 || stated.remaining === -1,
  }
}

/** A count, perhaps with a policy behind it (`100, 100;w=60`). Values beyond 2^53 are ignored. */
const leadingNumber = (text: string | undefined): number | null => {
  const digits = /^\s*([+-]?\d{1,20}(?:\.\d{1,12})?)(?![\w:.])/.exec(text?.slice(0, 64) ?? '')?.[1]
  const value = digits === undefined ? Number.NaN : Number(digits)
  return Math.abs(value) <= Number.MAX_SAFE_INTEGER ? value : null
}

/** A reset in any spelling: Go duration, seconds, epoch seconds or milliseconds, RFC 3339, HTTP date. */
export const parseReset = (
  text: string,
): { readonly atMs: number | null; readonly afterMs: number | null } | null => {
  const atMs = parseInstantMs(text)
  if (atMs !== null) return { atMs, afterMs: null }
  const number = parseDecimal(text)
  if (number === null) {
    const afterMs = parseDurationMs(text.slice(0, 64).trim())
    return afterMs === null ? null : { atMs: null, afterMs }
  }
  if (number < leastEpochSeconds) return { atMs: null, afterMs: wholeMs(number * 1000) }
  const epochMs = epochMsOf(number)
  return epochMs === null ? null : { atMs: epochMs, afterMs: null }
}

/**
 * The IETF drafts put all values in one header: `"default";r=0;t=30`, or `limit=9, remaining=0, reset=30`.
 */
const structuredReadings = (headers: ReadonlyMap<string, string>): LimitReading[] => {
  const value = headers.get('ratelimit')
  if (value === undefined) return []
  const field = (name: string): string | undefined =>
    new RegExp(`(?:^|[;,\\s])${name}=(\\d{1,15})`).exec(value)?.[1]
  const remaining = field('r') ?? field('remaining')
  if (remaining === undefined) return []
  return [readingOf('unstated', field('q') ?? field('limit'), remaining, field('t') ?? field('reset'))]
}

export const isExhausted = (reading: LimitReading): boolean => {
  return reading.remaining !== null && reading.remaining <= 0 && !reading.sentinel
}

/** Milliseconds from receipt until the window is whole again; null when the reading does not tell. */
export const resetInMs = (reading: LimitReading, receivedAtMs: number | null): number | null => {
  if (reading.resetAfterMs !== null) return reading.resetAfterMs
  if (reading.resetAtMs === null || receivedAtMs === null) return null
  return Math.max(0, Math.ceil(reading.resetAtMs - receivedAtMs))
}
