/** Durations and instants in the spellings that providers use. Pure: no clock and no time zone is read. */

const unitsMs: ReadonlyMap<string, number> = new Map([
  ['ns', 1e-6],
  ['us', 1e-3],
  ['µs', 1e-3],
  ['ms', 1],
  ['s', 1000],
  ['m', 60_000],
  ['h', 3_600_000],
  ['d', 86_400_000],
])

/** Whole milliseconds, rounded up; null for a wait that no timer takes: negative, not finite, beyond 2^53. */
export const wholeMs = (ms: number): number | null => {
  if (!Number.isFinite(ms) || ms < 0) return null
  // Binary fractions first go to nanoseconds: 1.1 s is 1100 ms and not 1101.
  const whole = Math.ceil(Math.round(ms * 1e6) / 1e6)
  const rounded = ms < 1e9 ? whole : Math.ceil(ms)
  return Number.isSafeInteger(rounded) ? rounded : null
}

/** A non-negative decimal without exponent, sign or hexadecimal; null for anything else. */
export const parseDecimal = (text: string): number | null => {
  const trimmed = text.trim()
  return /^\+?(?:\d{1,24}(?:\.\d{0,24})?|\.\d{1,24})$/.test(trimmed) ? Number(trimmed) : null
}

const clock = /^(?:(\d{1,6})\.)?(\d{1,4}):([0-5]?\d):([0-5]?\d(?:\.\d{1,9})?)(?!\d)/
const part =
  /[\s,]*(?:and\s+)?(\d[\d,]{0,20}(?:\.\d{1,12})?)\s*(ns|µs|us|ms|msecs?|milliseconds?|s|secs?|seconds?|m|mins?|minutes?|h|hrs?|hours?|d|days?)(?![a-z])/iy

/** A duration at the start of the text: `6m0s`, `120ms`, `2 minutes 5 seconds`, `1.02:03:04`, `00:01:30`. */
export const parseDurationMs = (text: string): number | null => {
  const [, days, hours, minutes, seconds] = clock.exec(text) ?? []
  if (hours !== undefined) {
    const wholeMinutes = (Number(days ?? 0) * 24 + Number(hours)) * 60 + Number(minutes)
    return wholeMs(wholeMinutes * 60_000 + Number(seconds) * 1000)
  }
  let totalMs: number | null = null
  part.lastIndex = 0
  for (let match = part.exec(text); match !== null; match = part.exec(text)) {
    const amount = Number(match[1]?.replaceAll(',', ''))
    totalMs = (totalMs ?? 0) + amount * (unitsMs.get(unitOf(match[2] ?? '')) ?? 0)
  }
  return totalMs === null ? null : wholeMs(totalMs)
}

const unitOf = (word: string): string => {
  const unit = word.toLowerCase()
  if (unit.startsWith('ms') || unit.startsWith('mil')) return 'ms'
  return unitsMs.has(unit) ? unit : unit.slice(0, 1)
}

/** An absolute time, epoch ms: an HTTP date in its three forms, or RFC 3339. Null for anything else. */
export const parseInstantMs = (text: string): number | null => {
  const trimmed = text.trim()
  if (trimmed.length > 64) return null
  const rfc3339 = /^\d{4}-\d\d-\d\d[T ]\d\d:\d\d/.test(trimmed)
  if (!rfc3339 && !/^(?:mon|tue|wed|thu|fri|sat|sun)[a-z]{0,6},?\s/i.test(trimmed)) return null
  // A time without a zone would be read in this machine's zone; HTTP and these headers mean UTC.
  const zoned = /(?:GMT|UTC|Z|[+-]\d\d:?\d\d)$/i.test(trimmed)
    ? trimmed
    : `${trimmed}${rfc3339 ? 'Z' : ' GMT'}`
  const atMs = Date.parse(zoned)
  return Number.isFinite(atMs) ? atMs : null
}
