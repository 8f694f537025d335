/**
 * The wait that a provider states, in order of precedence: `retry-after-ms`, `retry-after`, the structured
 * body, prose, the reset header of an exhausted window. No policy is applied: no floor, no ceiling, no
 * jitter. Null when the provider states no wait.
 */
import type { EvidenceKind } from '../../machines/model/evidence.ts'
import { isObject, type JsonObject, type Signal } from './answer.ts'
import {
  epochMsOf,
  leastEpochSeconds,
  parseDecimal,
  parseDurationMs,
  parseInstantMs,
  wholeMs,
} from './duration.ts'
import { isExhausted, type LimitReading, parseReset, readLimitReadings, resetInMs } from './headers.ts'
import { instantWaitInProse } from './instant.ts'

/** The wait that a `Retry-After` value states. A date needs the time of receipt; a past date is 0. */
export const parseRetryAfterMs = (text: string, receivedAtMs: number | null): number | null => {
  const atMs = parseInstantMs(text)
  if (atMs !== null) return receivedAtMs === null ? null : Math.max(0, atMs - receivedAtMs)
  // Fetch joins repeated headers. The longest wait is safe.
  const waits = text.split(',', 8).map((each) => {
    const seconds = parseDecimal(each)
    return seconds === null ? parseDurationMs(each.trim()) : amountMs(seconds, 1000, receivedAtMs)
  })
  return longest(waits)
}

/** An amount of a unit, or an instant where it is too large to be one. An instant needs the time of receipt; a past one is 0. */
const amountMs = (amount: number, unitMs: number, receivedAtMs: number | null): number | null => {
  if (amount * unitMs < leastEpochSeconds * 1000) return wholeMs(amount * unitMs)
  const atMs = epochMsOf(amount)
  return atMs === null || receivedAtMs === null ? null : wholeMs(Math.max(0, atMs - receivedAtMs))
}

const longest = (waits: ReadonlyArray<number | null>): number | null => {
  const stated = waits.filter((wait) => wait !== null)
  return stated.length === 0 ? null : Math.max(...stated)
}

const headerWaitMs = (headers: ReadonlyMap<string, string>, receivedAtMs: number | null): number | null => {
  for (const name of ['retry-after-ms', 'x-ms-retry-after-ms']) {
    const ms = parseDecimal(headers.get(name) ?? '')
    const wait = ms === null ? null : amountMs(ms, 1, receivedAtMs)
    if (wait !== null) return wait
  }
  return parseRetryAfterMs(headers.get('retry-after') ?? '', receivedAtMs)
}

const bodyKeysMs = ['retry_after_ms', 'retryAfterMs', 'reset_after_ms'] as const
const bodyKeysSeconds = [
  'retry_after',
  'retryAfter',
  'retry_after_seconds',
  'retryAfterSeconds',
  'resets_in_seconds',
  'reset_after',
] as const

const bodyWaitMs = (signal: Signal): number | null => {
  const inner = headerWaitMs(signal.innerHeaders, signal.receivedAtMs)
  if (inner !== null) return inner
  for (const object of signal.objects) {
    const wait =
      retryDelayMs(object['retryDelay']) ??
      fieldWaitMs(object, signal.receivedAtMs) ??
      instantWaitMs(object, signal.receivedAtMs)
    if (wait !== null) return wait
  }
  const windows = readLimitReadings(signal.declared, signal.innerHeaders)
  const open = windows.filter((limit) => isExhausted(limit) || (limit.remaining === null && !limit.sentinel))
  return longest(open.map((limit) => resetInMs(limit, signal.receivedAtMs)))
}

const fieldWaitMs = (object: JsonObject, receivedAtMs: number | null): number | null => {
  for (const key of bodyKeysMs) {
    const wait = numericMs(object[key], 1, receivedAtMs)
    if (wait !== null) return wait
  }
  for (const key of bodyKeysSeconds) {
    const wait = numericMs(object[key], 1000, receivedAtMs)
    if (wait !== null) return wait
  }
  return null
}

const instantKeys = [
  'resets_at',
  'reset_at',
  'resetsAt',
  'resetAt',
  'reset_time',
  'resetTime',
  'retry_at',
  'next_reset_time',
  'nextResetTime',
] as const

/** An absolute end: epoch seconds, epoch milliseconds or RFC 3339. */
const instantWaitMs = (object: JsonObject, receivedAtMs: number | null): number | null => {
  const stated = instantKeys.map((key) => object[key]).find((value) => value !== undefined && value !== null)
  if ((typeof stated !== 'number' && typeof stated !== 'string') || receivedAtMs === null) return null
  const atMs = parseReset(String(stated).slice(0, 64))?.atMs ?? null
  return atMs === null ? null : wholeMs(Math.max(0, atMs - receivedAtMs))
}

const numericMs = (value: unknown, unitMs: number, receivedAtMs: number | null): number | null => {
  if (typeof value === 'number') return value < 0 ? null : amountMs(value, unitMs, receivedAtMs)
  if (typeof value !== 'string' || value.length > 64) return null
  const amount = parseDecimal(value)
  return amount === null ? parseDurationMs(value) : amountMs(amount, unitMs, receivedAtMs)
}

/** A protobuf duration: `"38.5s"` in JSON, or its two fields. */
const retryDelayMs = (value: unknown): number | null => {
  if (typeof value === 'string') return parseDurationMs(value.slice(0, 64).trim())
  if (!isObject(value)) return null
  const seconds = Number(value['seconds'] ?? 0)
  const nanos = Number(value['nanos'] ?? 0)
  return value['seconds'] === undefined && value['nanos'] === undefined
    ? null
    : wholeMs(seconds * 1000 + nanos / 1e6)
}

const proseStarts =
  /(?:\b(?:try(?:ing)? again|retry(?:ing)?|wait|resets?|refresh(?:es|ed)?|replenished|renew(?:s|ed)|available(?: again)?|versuchen|warten|réessaye[rz]|attende[rz]|intént[ae]\w*|inténtelo|espere|attendre)(?![a-z])|请(?:等待|稍等)|等待|重置|重试|恢复|刷新)([^\d.;。\n]{0,32})(?=\d)/gi
/** Languages that put the wait before its verb: "30 秒后重试", "30秒後に", "30초 후", "in 30 Sekunden erneut". */
const proseEnds =
  /(?<![\d.,:])(\d[^。;\n]{0,24}?)\s?(?:之?后|之?後|以后|以後|후|内|內|erneut|wieder|de nouveau)(?![a-z])/g
const proseCap = 12

/** The wait that a sentence states: "try again in 7m12s", "replenished in 01:02:03", "wait 40 seconds". */
export const proseWaitMs = (text: string): number | null => {
  let tried = 0
  for (const match of text.matchAll(proseStarts)) {
    tried += 1
    if (tried > proseCap) break
    const rest = text.slice(match.index + match[0].length, match.index + match[0].length + 64)
    if (namesWindow(match[1] ?? '', rest)) continue
    const wait = parseDurationMs(rest) ?? bareSecondsMs(match[1] ?? '', rest)
    if (wait !== null) return wait
  }
  for (const [, stated = ''] of [...text.matchAll(proseEnds)].slice(0, proseCap)) {
    const wait = parseDurationMs(stated)
    if (wait !== null) return wait
  }
  return null
}

/** "when the current 5 hour window ends", "resets every 5 hours": the length of a window is no wait. */
const namesWindow = (lead: string, rest: string): boolean =>
  /\b(?:every|each|per|当前|每)\s?$/i.test(lead) ||
  /^\d{1,3}[\s-]?[a-z]{1,8}\s(?:window|limit|quota|usage|session|rolling|period|plan|cycle)\b/i.test(rest)

/** "retry after 30" means seconds. Any other number without a unit counts something else. */
const bareSecondsMs = (lead: string, rest: string): number | null => {
  const amount = /\b(?:in|after):?\s*$/i.test(lead)
    ? /^\d{1,9}(?:\.\d{1,9})?(?=\.?(?:\s*$|\s*\n|[,)]))/.exec(rest)?.[0]
    : undefined
  return amount === undefined ? null : wholeMs(Number(amount) * 1000)
}

/** Kinds for which a window's reset does not tell when to come back. */
const resetless: ReadonlySet<EvidenceKind> = new Set(['not-capacity', 'overloaded', 'quota-exhausted'])

const resetWaitMs = (signal: Signal, kind: EvidenceKind): number | null => {
  if (resetless.has(kind)) return null
  const matches = (limit: LimitReading): boolean =>
    limit.dimension === kind || limit.dimension === `project-${kind}`
  const exhausted = signal.limits.filter(isExhausted)
  const binding = exhausted.filter(matches)
  // Some answers state only the reset of the window that they name, without a remaining count.
  const named = signal.limits.filter((limit) => matches(limit) && limit.remaining === null && !limit.sentinel)
  const chosen = [binding, named, exhausted].find((limits) => limits.length > 0) ?? []
  return longest(chosen.map((limit) => resetInMs(limit, signal.receivedAtMs)))
}

/**
 * The wait that the answer states for this kind of refusal, or null. `readerWaitMs` is the wait that the
 * reader found.
 */
export const readRetryAfterMs = (
  signal: Signal,
  kind: EvidenceKind,
  readerWaitMs: number | null,
): number | null => {
  const header = headerWaitMs(signal.headers, signal.receivedAtMs)
  if (header !== null || !signal.isError) return header
  const prose = (): number | null =>
    proseWaitMs(signal.text) ??
    (kind === 'not-capacity' ? null : instantWaitInProse(signal.text, signal.receivedAtMs))
  return bodyWaitMs(signal) ?? readerWaitMs ?? prose() ?? resetWaitMs(signal, kind)
}
