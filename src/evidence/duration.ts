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
  ['w', 604_800_000],
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
  /[\s,]*(?:and\s+|und\s+|et\s+|y\s+|零|又)?(\d[\d,]{0,20}(?:\.\d{1,12})?)\s*(ns|µs|us|ms|msecs?|milliseconds?|s|secs?|seconds?|sekunden?|secondes?|segundos?|m|mins?|minutes?|minuten?|minutos?|h|hrs?|hours?|stunden?|heures?|horas?|d|days?|tagen?|tage|jours?|d[ií]as?|w|wks?|weeks?|wochen?|semaines?|semanas?|毫秒|秒钟|秒鐘|秒|초|分钟|分鐘|分|분|个小时|個小時|小时|小時|時間|시간|天|日(?=[后後間])|个?星期|週間|周|週|주)(?![a-z])/iy
/** ISO 8601, without years and months, which have no fixed length. */
const isoDuration =
  /^P(?=\d|T\d)(?:(\d{1,6})W)?(?:(\d{1,6})D)?(?:T(?:(\d{1,8})H)?(?:(\d{1,8})M)?(?:(\d{1,10}(?:\.\d{1,9})?)S)?)?(?![\dA-Za-z])/

/** A duration at the start of the text: `6m0s`, `120ms`, `2 minutes 5 seconds`, `1.02:03:04`, `00:01:30`. */
export const parseDurationMs = (text: string): number | null => {
  const [, days, hours, minutes, seconds] = clock.exec(text) ?? []
  if (hours !== undefined) {
    const wholeMinutes = (Number(days ?? 0) * 24 + Number(hours)) * 60 + Number(minutes)
    return wholeMs(wholeMinutes * 60_000 + Number(seconds) * 1000)
  }
  const iso = isoDuration.exec(text)
  if (iso !== null) {
    const [weeks = 0, days = 0, hours = 0, minutes = 0, seconds = 0] = iso
      .slice(1)
      .map((each) => Number(each ?? 0))
    return wholeMs((((weeks * 7 + days) * 24 + hours) * 60 + minutes) * 60_000 + seconds * 1000)
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
  return unitsMs.has(unit) ? unit : (foreignUnits.get(unit.replace(/^[个個]/, '')) ?? unit.slice(0, 1))
}

/** Units whose first letter is not that of the English word. */
const foreignUnits: ReadonlyMap<string, string> = new Map([
  ['毫秒', 'ms'],
  ...['秒', '秒钟', '秒鐘', '초'].map((unit) => [unit, 's'] as const),
  ...['分', '分钟', '分鐘', '분'].map((unit) => [unit, 'm'] as const),
  ...['小时', '小時', '時間', '시간', 'stunde', 'stunden'].map((unit) => [unit, 'h'] as const),
  ...['天', '日', 'tag', 'tage', 'tagen', 'jour', 'jours'].map((unit) => [unit, 'd'] as const),
  ...['星期', '週間', '周', '週', '주', 'semaine', 'semaines', 'semana', 'semanas'].map(
    (unit) => [unit, 'w'] as const,
  ),
])

/** No stated wait is 30 years long: a number from here on is an instant. */
export const leastEpochSeconds = 1e9

/** Epoch milliseconds of a number in seconds or milliseconds; null for what is neither. */
export const epochMsOf = (number: number): number | null => {
  return number < 1e14 ? wholeMs(number < 1e11 ? number * 1000 : number) : null
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
