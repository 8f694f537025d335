/**
 * Absolute times inside sentences: "resets at 2031-03-05T15:00:00Z", "on March 9, 2031 at 4:30 PM UTC",
 * "3pm (America/New_York)". A time without a zone is no instant: it could be any of twenty-four hours.
 */
import { wholeMs } from './duration.ts'

const hourMs = 3_600_000
const dayMs = 24 * hourMs
const months = 'jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec'
const monthWord = `(${months})[a-z]{0,6}\\.?`
const ordinalDay = '(\\d{1,2})(?:st|nd|rd|th)?'
const timeOfDay = '(\\d{1,2})(?::(\\d\\d)(?::(\\d\\d)(?:\\.\\d{1,9})?)?)?\\s?(am|pm|a\\.m\\.|p\\.m\\.)?'
const joint = '[\\s,]{0,3}(?:T|at|um|\\bà\\b|，)?\\s{0,2}'

/** Offsets of zone words that mean one offset wherever they are used, minutes. `CST` and `IST` mean several. */
const zoneWords: ReadonlyMap<string, number> = new Map([
  ['z', 0],
  ['utc', 0],
  ['gmt', 0],
  ['pst', -480],
  ['pdt', -420],
  ['mst', -420],
  ['mdt', -360],
  ['cdt', -300],
  ['est', -300],
  ['edt', -240],
  ['cet', 60],
  ['cest', 120],
  ['jst', 540],
  ['kst', 540],
  ['beijing time', 480],
  ['china standard time', 480],
  ['北京时间', 480],
  ['北京時間', 480],
])
const zoneNames: ReadonlyMap<string, string> = new Map([
  ['pacific time', 'America/Los_Angeles'],
  ['eastern time', 'America/New_York'],
])

interface Fields {
  readonly year: number | null
  readonly month: number | null
  readonly day: number | null
  readonly hour: number
  readonly minute: number
  readonly second: number
}

const dateForms: ReadonlyArray<readonly [RegExp, (groups: ReadonlyArray<string | undefined>) => Fields]> = [
  [
    new RegExp(
      `(\\d{4})(?:[-/.]|年\\s?)(\\d{1,2})(?:[-/.]|月\\s?)(\\d{1,2})(?:日|号)?${joint}${timeOfDay}`,
      'gi',
    ),
    ([year, month, day, ...time]) => ({ ...dateOf(year, Number(month), day), ...timeOf(time) }),
  ],
  [
    new RegExp(`\\b${monthWord}\\s${ordinalDay}(?:,?\\s(\\d{4}))?${joint}${timeOfDay}`, 'gi'),
    ([month, day, year, ...time]) => ({ ...dateOf(year, monthOf(month), day), ...timeOf(time) }),
  ],
  [
    new RegExp(`\\b${ordinalDay}\\s${monthWord}(?:,?\\s(\\d{4}))?${joint}${timeOfDay}`, 'gi'),
    ([day, month, year, ...time]) => ({ ...dateOf(year, monthOf(month), day), ...timeOf(time) }),
  ],
]
const timeForm = new RegExp(`(?<![\\d:.-])${timeOfDay}(?![\\d:])`, 'gi')
const midnight = /\bmidnight\b/gi

const dateOf = (
  year: string | undefined,
  month: number,
  day: string | undefined,
): Pick<Fields, 'year' | 'month' | 'day'> => {
  return { year: year === undefined ? null : Number(year), month, day: Number(day) }
}

const monthOf = (word: string | undefined): number =>
  months.split('|').indexOf(word?.slice(0, 3).toLowerCase() ?? '') + 1

const timeOf = ([hour, minute, second, half]: ReadonlyArray<string | undefined>): Pick<
  Fields,
  'hour' | 'minute' | 'second'
> => {
  const stated = Number(hour)
  const evening = half?.toLowerCase().startsWith('p') ?? false
  const whole = half === undefined ? stated : (stated % 12) + (evening ? 12 : 0)
  return { hour: whole, minute: Number(minute ?? 0), second: Number(second ?? 0) }
}

/** Words that make a time the end of a wait, in the languages that providers answer in. */
const resetWords =
  /\bre-?(?:sets?|freshe[sd]|freshed|new(?:s|ed)?|plenish\w*|tr(?:y|ies|ying)|sumes?|stored?)\b|\bagain\b|\buntil\b|\bavailable\b|\bunlocks?\b|\blifted\b|\bzurückgesetzt\b|\bréinitialis|\brestablec|重置|刷新|恢复|恢復|重试|重試|再试|再試|解除|リセット|再試行|回復|초기화|재시도|재설정/i
const beforeChars = 72
const afterChars = 40
const triesCap = 12

/** Milliseconds from `fromMs` until the time that a sentence states as the end of a wait; null when it states none. */
export const instantWaitInProse = (text: string, fromMs: number | null): number | null => {
  if (fromMs === null) return null
  for (const found of candidates(text)) {
    const { fields, startsAt, endsAt } = found
    const around = `${lastSentence(text.slice(Math.max(0, startsAt - beforeChars), startsAt))} ${firstSentence(text.slice(endsAt, endsAt + afterChars))}`
    if (!resetWords.test(around)) continue
    const atMs = instantOf(fields, zoneAround(text, startsAt, endsAt), fromMs)
    if (atMs !== null) return wholeMs(Math.max(0, atMs - fromMs))
  }
  return null
}

const lastSentence = (text: string): string => text.split(/[.;!。；！\n]\s?(?=\S)/).at(-1) ?? ''
const firstSentence = (text: string): string => text.split(/[;!。；！\n]|\.(?:\s|$)/, 1)[0] ?? ''

interface Candidate {
  readonly fields: Fields
  readonly startsAt: number
  readonly endsAt: number
}

/** Dates first: a time of day alone is read only where no date stands. */
const candidates = (text: string): ReadonlyArray<Candidate> => {
  const dated = dateForms.flatMap(([form, read]) => matches(text, form, read))
  if (dated.length > 0) return dated.toSorted((left, right) => left.startsAt - right.startsAt)
  const timed = matches(text, timeForm, (groups) => ({
    year: null,
    month: null,
    day: null,
    ...timeOf(groups),
  })).filter(({ startsAt, endsAt }) => /[:m]/i.test(text.slice(startsAt, endsAt)))
  const atMidnight = matches(text, midnight, () => ({
    year: null,
    month: null,
    day: null,
    hour: 0,
    minute: 0,
    second: 0,
  }))
  return [...timed, ...atMidnight]
}

const matches = (
  text: string,
  form: RegExp,
  read: (groups: ReadonlyArray<string | undefined>) => Fields,
): Candidate[] => {
  const found: Candidate[] = []
  for (const match of text.matchAll(form)) {
    found.push({ fields: read(match.slice(1)), startsAt: match.index, endsAt: match.index + match[0].length })
    if (found.length >= triesCap) break
  }
  return found
}

type Zone = { readonly offsetMinutes: number } | { readonly name: string }

const zoneAfter =
  /^\s{0,2}\(?\s?(?:(?:utc|gmt)?\s?([+-−]\d{1,2})(?::?(\d\d))?(?!\d)|(z|utc|gmt|p[sd]t|m[sd]t|cdt|e[sd]t|cest|cet|jst|kst)\b|((?:pacific|eastern|beijing|china standard) time)|(北京时间|北京時間)|([A-Z][a-z]+\/[A-Z][A-Za-z_]+(?:\/[A-Z][A-Za-z_]+)?))/i
const zoneBefore = /(北京时间|北京時間|beijing time|utc|gmt)\s?[:：]?\s?(?:on|at)?\s?$/i

const zoneAround = (text: string, startsAt: number, endsAt: number): Zone | null => {
  const after = zoneAfter.exec(text.slice(endsAt, endsAt + 48))
  if (after !== null) {
    const [, hours, minutes, word, timeWord, beijing, name] = after
    if (hours !== undefined) {
      const whole = Number(hours.replace('−', '-'))
      if (!Number.isFinite(whole) || Math.abs(whole) > 14) return null
      const sign = /^[-−]/.test(hours) ? -1 : 1
      return { offsetMinutes: whole * 60 + sign * Number(minutes ?? 0) }
    }
    if (name !== undefined) return { name }
    return zoneOfWord(word ?? timeWord ?? beijing ?? '')
  }
  return zoneOfWord(zoneBefore.exec(text.slice(Math.max(0, startsAt - 20), startsAt))?.[1] ?? '')
}

const zoneOfWord = (word: string): Zone | null => {
  const offsetMinutes = zoneWords.get(word.toLowerCase())
  if (offsetMinutes !== undefined) return { offsetMinutes }
  const name = zoneNames.get(word.toLowerCase())
  return name === undefined ? null : { name }
}

/** Without a day: the next time that it is this time of day. Without a year: the next such day. */
const instantOf = (fields: Fields, zone: Zone | null, fromMs: number): number | null => {
  if (zone === null || !isTime(fields)) return null
  const offsetMs = offsetOf(zone, fromMs)
  if (offsetMs === null) return null
  const here = new Date(fromMs + offsetMs)
  const { hour, minute, second } = fields
  const at = (year: number, month: number, day: number): number | null => {
    const localMs = Date.UTC(year, month - 1, day, hour, minute, second)
    const date = new Date(localMs)
    if (date.getUTCMonth() !== (month - 1) % 12 || Number.isNaN(localMs)) return null
    // The offset on that day, which summer time may have changed.
    return localMs - (offsetOf(zone, localMs - offsetMs) ?? offsetMs)
  }
  if (fields.month === null || fields.day === null) {
    const today = at(here.getUTCFullYear(), here.getUTCMonth() + 1, here.getUTCDate())
    return today === null || today > fromMs ? today : today + dayMs
  }
  if (fields.year !== null) return at(fields.year, fields.month, fields.day)
  const thisYear = at(here.getUTCFullYear(), fields.month, fields.day)
  return thisYear === null || thisYear > fromMs - dayMs
    ? thisYear
    : at(here.getUTCFullYear() + 1, fields.month, fields.day)
}

const isTime = ({ month, day, hour, minute, second }: Fields): boolean =>
  hour <= 24 &&
  minute <= 59 &&
  second <= 60 &&
  (month === null || (month >= 1 && month <= 12)) &&
  (day === null || (day >= 1 && day <= 31))

/** Milliseconds that the zone's clocks are ahead of UTC at `atMs`; null for a name that is no zone. */
const offsetOf = (zone: Zone, atMs: number): number | null => {
  if ('offsetMinutes' in zone) return zone.offsetMinutes * 60_000
  try {
    const parts = new Intl.DateTimeFormat('en-US', {
      timeZone: zone.name,
      timeZoneName: 'longOffset',
    }).formatToParts(atMs)
    const stated = parts.find(({ type }) => type === 'timeZoneName')?.value ?? ''
    const [, sign = '+', hours = '0', minutes = '0'] = /GMT([+-])?(\d\d)?:?(\d\d)?/.exec(stated) ?? []
    return (sign === '-' ? -1 : 1) * (Number(hours) * hourMs + Number(minutes) * 60_000)
  } catch {
    return null
  }
}
