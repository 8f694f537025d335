/**
 * The sentence that names a dimension: "8,000 output tokens per minute", "requests per day (RPD)", "your
 * daily rate limit", `input_tokens_per_minute`. A noun without a window, or a window without a noun, is no
 * dimension: "reduce your tokens" and "try again in a minute" name none.
 */
import type { EvidenceFacts, EvidenceKind, EvidenceScope } from '../../machines/model/evidence.ts'
import type { Finding } from './answer.ts'

export type Noun = 'requests' | 'tokens' | 'input-tokens' | 'output-tokens'
export type Window = 'second' | 'minute' | 'hour' | 'day' | 'month'

export interface Dimension {
  readonly noun: Noun
  readonly window: Window
  /** The number that stands right before the noun, with its unit: the limit that was exceeded. */
  readonly limit: number | null
}

const windowWord = 'seconds?|secs?|minutes?|mins?|hours?|hrs?|days?|months?'
const nounWord = 'tokens?|requests?|queries|query|calls?'
const sideWord = 'input|output|prompt|completion|generated|request'

const ceiling = '(?:limit|quota|allowance|budget|cap)\\b'

/** "input tokens per minute", `requests_per_day`, "API calls / minute", "request limit per minute". */
const nounPerWindow = new RegExp(
  `(?<![a-z])(?:(${sideWord})[\\s_-]{1,2})?(${nounWord})[\\s_-]{0,2}(?:count[\\s_-]{1,2}|limit[\\s_-]{1,2}|rate[\\s_-]{1,2}){0,2}(?:per|/|an?|each)[\\s_-]{0,2}(?:model[\\s_-]{1,2}per[\\s_-]{1,2})?(${windowWord})(?![a-z])`,
  'i',
)
/** "request tokens has exceeded your per-minute rate limit". */
const nounThenWindow = new RegExp(
  `(?<![a-z])(?:(${sideWord})\\s)?(${nounWord})\\b[^.;:(]{0,60}?\\b(?:per[- ](${windowWord})|(daily|hourly|monthly))\\s(?:rate |usage )?${ceiling}`,
  'i',
)
/** "request rate exceeds the limit per second". */
const nounThenCeiling = new RegExp(
  `(?<![a-z])(?:(${sideWord})\\s)?(${nounWord})\\b[^.;:(]{0,40}?\\b${ceiling} per (${windowWord})(?![a-z])`,
  'i',
)
/** "daily token limit", "per-minute request quota". */
const windowThenNoun = new RegExp(
  `\\b(?:per[- ](${windowWord})|(daily|hourly|monthly))\\s(?:(${sideWord})\\s)?(${nounWord})\\s(?:rate |usage )?${ceiling}`,
  'i',
)
/** "on TPM", "max RPM: 20". Upper case only: in lower case these are parts of words. */
const abbreviation = /(?<![A-Za-z])([IO]?TP[MD]|[RQ]P[MDS])(?![A-Za-z])/
/** "qps limit reached", "exceeded rpm quota": in lower case beside the word alone. */
const lowerAbbreviation = new RegExp(
  `(?<![A-Za-z])([io]?tp[md]|[rq]p[mds])(?![A-Za-z])(?=[^.;:\\n]{0,24}\\b${ceiling})`,
)
/** "exceeded token rate limit", "call rate limit". These are minutes wherever they are documented. */
const nounRateLimit = /(?<![a-z])(?:(input|output)\s)?(tokens?|requests?|calls?) rate[ -]limit/i
/** Two ceilings in one sentence, which does not tell which of them was hit. */
const eitherNoun = /(?:requests|queries|tokens|calls|TPM|RPM)\s*(?:and|or|,|\/)\s*[\d.,]*\s*$/i

/** "rate limit of 100,000 fast mode input tokens": words between the number and its noun name a pool. */
const qualifiedLimit =
  /\b(?:limit(?:ed)?|quota|maximum|allowance)\s(?:of|to|is)\s(\d[\d,]{0,20}(?:\.\d{1,6})?)\s(?:[a-z][a-z-]{0,20}\s){1,3}$/i

/** The first dimension that the text names; null when it names none, or two as alternatives. */
export const readDimension = (text: string): Dimension | null => {
  const found = [matchPer(text), matchThenWindow(text), matchWindowFirst(text), matchAbbreviation(text)]
  const stated = found.filter((match) => match !== null).toSorted((left, right) => left.at - right.at)[0]
  if (stated !== undefined)
    return eitherNoun.test(text.slice(Math.max(0, stated.at - 48), stated.at)) ? null : stated
  const match = nounRateLimit.exec(text)
  return match === null ? null : { noun: nounOf(match[1], match[2]), window: 'minute', limit: null }
}

type Match = Dimension & { readonly at: number }

const matchPer = (text: string): Match | null => {
  const match = nounPerWindow.exec(text)
  if (match === null) return null
  const lead = text.slice(Math.max(0, match.index - 64), match.index)
  const before = /(\d[\d,]{0,20}(?:\.\d{1,6})?)\s*$/.exec(lead) ?? qualifiedLimit.exec(lead)
  const limit = readNumber(before?.[1])
  const at = match.index - (before?.[0].length ?? 0)
  return { at, noun: nounOf(match[1], match[2]), window: windowOf(match[3]), limit }
}

const matchThenWindow = (text: string): Match | null => {
  const match = nounThenWindow.exec(text) ?? nounThenCeiling.exec(text)
  if (match === null) return null
  return {
    at: match.index,
    noun: nounOf(match[1], match[2]),
    window: windowOf(match[3] ?? match[4]),
    limit: null,
  }
}

const matchWindowFirst = (text: string): Match | null => {
  const match = windowThenNoun.exec(text)
  if (match === null) return null
  return {
    at: match.index,
    noun: nounOf(match[3], match[4]),
    window: windowOf(match[1] ?? match[2]),
    limit: null,
  }
}

const matchAbbreviation = (text: string): Match | null => {
  const match = abbreviation.exec(text) ?? lowerAbbreviation.exec(text)
  if (match === null || /^\s*(?:\/|or|and)\s/.test(text.slice(match.index + match[0].length))) return null
  return { at: match.index, ...dimensionOfAbbreviation(match[0]), limit: null }
}

/** `ITPM`, `RPD`, `QPS`, in any case. The caller knows that the word is an abbreviation. */
export const dimensionOfAbbreviation = (word: string): { readonly noun: Noun; readonly window: Window } => {
  const upper = word.toUpperCase()
  const window = upper.endsWith('D') ? 'day' : upper.endsWith('S') ? 'second' : 'minute'
  if (!upper.includes('TP')) return { noun: 'requests', window }
  return {
    noun: upper.startsWith('I') ? 'input-tokens' : upper.startsWith('O') ? 'output-tokens' : 'tokens',
    window,
  }
}

const nounOf = (side: string | undefined, noun: string | undefined): Noun => {
  if (noun?.toLowerCase().startsWith('token') !== true) return 'requests'
  // "request tokens" is the tokens of a request.
  if (/^(?:input|prompt)$/i.test(side ?? '')) return 'input-tokens'
  return /^(?:output|completion|generated)$/i.test(side ?? '') ? 'output-tokens' : 'tokens'
}

/** The window that a word names, in any spelling; minutes when there is no word. */
export const windowOf = (word: string | undefined): Window => {
  const folded = word?.toLowerCase() ?? ''
  if (folded.startsWith('s')) return 'second'
  if (folded.startsWith('h')) return 'hour'
  if (folded.startsWith('d')) return 'day'
  return folded.startsWith('mo') ? 'month' : 'minute'
}

/** A stated count with or without thousands separators; null unless finite, non-negative and exact. */
export const readNumber = (text: string | undefined): number | null => {
  if (text === undefined || text.length > 32) return null
  const value = Number(text.replaceAll(',', ''))
  return Number.isFinite(value) && value >= 0 && value <= Number.MAX_SAFE_INTEGER ? value : null
}

export const kindOf = ({ noun, window }: Pick<Dimension, 'noun' | 'window'>): EvidenceKind => {
  // An hour has no kind of its own. A month is an allowance rather than a rate.
  if (window === 'hour') return 'unknown-rate-limit'
  if (window === 'month') return 'quota-exhausted'
  if (window === 'day') return noun === 'requests' ? 'requests-per-day' : 'tokens-per-day'
  return `${noun}-per-minute`
}

/** Shortest first. Of several violated windows the longest binds. */
export const windowOrder: ReadonlyArray<Window> = ['second', 'minute', 'hour', 'day', 'month']

/** "Limit 30000, Used 29937, Requested 385", with or without colons; `Current` is an older word for used. */
export const readTally = (text: string): EvidenceFacts => {
  const field = (name: string): number | null =>
    readNumber(new RegExp(`\\b${name}:?\\s{1,2}(\\d[\\d,]{0,20}(?:\\.\\d{1,6})?)`).exec(text)?.[1])
  const limit = field('[Ll]imit')
  if (limit === null) return {}
  const used = field('Used') ?? field('[Cc]urrent')
  const requested = field('Requested')
  return { limit, ...(used === null ? {} : { used }), ...(requested === null ? {} : { requested }) }
}

/**
 * The finding for a named dimension. A request above its limit never fits; a limit of 0 is an allocation
 * that was never made.
 */
export const dimensionFinding = (
  dimension: Dimension,
  scope: EvidenceScope,
  tally: EvidenceFacts,
): Finding => {
  const { noun, window } = dimension
  const unit = `${noun.replace('-', '_')}_per_${window}`
  const facts =
    tally.limit === undefined && dimension.limit !== null ? { limit: dimension.limit, unit } : tally
  const { limit, requested } = facts
  if (limit === 0) return { kind: 'quota-exhausted', scope: 'model', retryable: false, facts }
  const fits = limit === undefined || requested === undefined || requested <= limit
  return { kind: kindOf(dimension), scope, retryable: fits, facts }
}
