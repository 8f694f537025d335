/** The series of the plots, computed from a run. */
import type { CallRecord } from '../../world.ts'
import type { Run } from '../run.ts'

const minuteMs = 60_000

export interface TokenPoint {
  readonly atMs: number
  /** Input tokens accepted in the minute before, or in the clock minute when a rule counts by those. */
  readonly usedTokens: number
  /** `usedTokens` plus the tokens that one more call could have had; Infinity when no rule limits them. */
  readonly ceilingTokens: number
}

/** Tokens against the ceiling, at the run's plot points, before any other event of that millisecond. */
export const tokenSeries = ({ log, rooms, scenario }: Run): ReadonlyArray<TokenPoint> => {
  const accepted = log.filter(({ kind }) => kind === 'accepted')
  const byClock = scenario.provider.rules.some(
    (spec) => spec.rule === 'time-step' || (spec.rule === 'token-window' && spec.form === 'fixed'),
  )
  let [from, to, usedTokens] = [0, 0, 0]
  return rooms.map(({ atMs, roomTokens }) => {
    const sinceMs = byClock ? Math.floor(atMs / minuteMs) * minuteMs : atMs - minuteMs + 1
    for (; to < accepted.length && accepted[to]!.at < atMs; to += 1) usedTokens += accepted[to]!.inputTokens
    for (; from < to && accepted[from]!.at < sinceMs; from += 1) usedTokens -= accepted[from]!.inputTokens
    return { atMs, usedTokens, ceilingTokens: usedTokens + roomTokens }
  })
}

export interface PrimarySpan {
  readonly id: string
  readonly inputTokens: number
  readonly submittedAtMs: number
  /** Null when the call was never accepted. */
  readonly acceptedAtMs: number | null
  /** Time of the answer or of giving up; the end of the run when neither came. */
  readonly endedAtMs: number
  readonly refusals: number
  readonly failed: boolean
}

const asked = ({ records, scenario }: Run, lane: 'primary' | 'auxiliary'): ReadonlyArray<CallRecord> =>
  records.filter(({ call, submittedAtMs }) => call.lane === lane && submittedAtMs < scenario.durationMs)

/** The primaries in the order of submission, cut at `endMs`. */
export const primarySpans = (run: Run, endMs: number): ReadonlyArray<PrimarySpan> =>
  asked(run, 'primary').map(({ call, submittedAtMs, acceptedAtMs, endedAtMs, refusals, failed }) => ({
    id: call.id,
    inputTokens: call.inputTokens,
    submittedAtMs,
    acceptedAtMs: acceptedAtMs === null || acceptedAtMs > endMs ? null : acceptedAtMs,
    endedAtMs: Math.min(endedAtMs ?? endMs, endMs),
    refusals,
    failed,
  }))

export interface LaneCounts {
  readonly atMs: number
  readonly waiting: number
  readonly inFlight: number
}

/** Auxiliaries that wait and that run, at the run's plot points. */
export const auxiliaryCounts = (run: Run): ReadonlyArray<LaneCounts> => {
  const calls = asked(run, 'auxiliary')
  const count = (times: ReadonlyArray<number>) => {
    const sorted = times.toSorted((one, other) => one - other)
    let index = 0
    return (atMs: number): number => {
      while (index < sorted.length && sorted[index]! <= atMs) index += 1
      return index
    }
  }
  const isTime = (time: number | null): time is number => time !== null
  const submitted = count(calls.map(({ submittedAtMs }) => submittedAtMs))
  const accepted = count(calls.map(({ acceptedAtMs }) => acceptedAtMs).filter(isTime))
  const ended = count(
    calls.map(({ acceptedAtMs, endedAtMs }) => (acceptedAtMs === null ? null : endedAtMs)).filter(isTime),
  )
  const gaveUp = count(
    calls.map(({ acceptedAtMs, endedAtMs }) => (acceptedAtMs === null ? endedAtMs : null)).filter(isTime),
  )
  return run.rooms.map(({ atMs }) => {
    const [came, went] = [submitted(atMs), accepted(atMs)]
    return { atMs, waiting: came - went - gaveUp(atMs), inFlight: went - ended(atMs) }
  })
}
