/** The results of a run. Calls submitted in the run-off after the duration do not count. */
import type { CallRecord } from '../world.ts'
import type { Bound } from './clairvoyant/clairvoyant.ts'
import { jainOfEquals } from './equals.ts'
import { jainOf } from './jain.ts'
import { isStranger, type Run, runOffMs } from './run.ts'
import { utilizationOf } from './utilization.ts'

export interface Metrics {
  /**
   * From submission to acceptance by the provider, ms, over all primaries; percentiles by nearest rank; null
   * without primaries. A primary that was never accepted counts as waiting until the end of the longest
   * possible run-off, also when its client gave up.
   */
  readonly primaryWaitMs: {
    readonly p50: number | null
    readonly p95: number | null
    readonly max: number | null
  }
  /** Primaries that were not accepted, whether they still waited or their client gave up. */
  readonly primariesUnserved: number
  /** Input tokens of auxiliaries that were accepted within the duration and not aborted. */
  readonly auxiliaryTokensServed: number
  /**
   * Longest time from an auxiliary's submission to its acceptance, ms. For a call that was not accepted
   * by the end of the duration, the time to that end, also when the client gave up. 0 without auxiliaries.
   */
  readonly auxiliaryMaxDeferralMs: number
  /** Dispatches that the provider refused within the duration. */
  readonly refusals: { readonly primary: number; readonly auxiliary: number }
  /** Fairness between principals of the auxiliary lane, in (0, 1]: see `jainOf`. */
  readonly jain: number
  /**
   * The same index between principals with equal demands, by their tokens alone; null when there are no two
   * such principals.
   */
  readonly jainOfEquals: number | null
  /**
   * All refusals within the duration per call accepted in it; the number of refusals when no call was
   * accepted.
   */
  readonly refusalsPerAccepted: number
  /** The used share of the provider's limits, in [0, 1]: see `utilizationOf`. */
  readonly utilization: number | null
}

export interface Measured extends Metrics {
  /** Mean wait of the primaries in `primaryWaitMs`, ms; 0 without primaries. For ratios. */
  readonly meanPrimaryWaitMs: number
  /** Input tokens accepted within the duration and not aborted, both lanes. */
  readonly acceptedTokens: number
}

export interface Ratios {
  /**
   * (mean wait + 1 s) / (the oracle's mean wait + 1 s). Without the added second, an oracle with no waits
   * would turn a tiny wait into an infinite ratio. Values up to 1.25 and 2 are good.
   */
  readonly primaryWaitVsOracle: number
  /** The same ratio against the bound that no schedule beats (`clairvoyant.ts`); at least 1. */
  readonly primaryWaitVsClairvoyant: number
  /** Tokens served / the oracle's; 1 when the oracle served none. */
  readonly auxiliaryTokensVsOracle: number
  /**
   * Tokens served / the auxiliary tokens of the bound, in which all primaries are served; null without a
   * bound. Above 1 only when some primaries were not served.
   */
  readonly auxiliaryTokensVsClairvoyant: number | null
  /** All refusals / the refusals of naive retries, which count as at least 1. */
  readonly refusalsVsNaive: number
}

/** The smallest value that is not below `share` of the values; null for no values. Sorted ascending. */
export const nearestRank = (sorted: ReadonlyArray<number>, share: number): number | null =>
  sorted.length === 0 ? null : sorted[Math.max(0, Math.ceil(share * sorted.length) - 1)]!

/** Waits of the primaries, ascending, ms. */
export const primaryWaits = (run: Run): ReadonlyArray<number> => {
  const endMs = run.scenario.durationMs + runOffMs(run.scenario)
  return counted(run, 'primary')
    .map(({ submittedAtMs, acceptedAtMs }) => (acceptedAtMs ?? endMs) - submittedAtMs)
    .sort((one, other) => one - other)
}

/** Waits of the auxiliaries, ascending, ms, cut at the duration. */
export const auxiliaryWaits = (run: Run): ReadonlyArray<number> => {
  const { durationMs } = run.scenario
  return counted(run, 'auxiliary')
    .map(
      ({ submittedAtMs, acceptedAtMs }) => Math.min(acceptedAtMs ?? durationMs, durationMs) - submittedAtMs,
    )
    .sort((one, other) => one - other)
}

const counted = ({ records, scenario }: Run, lane: 'primary' | 'auxiliary'): ReadonlyArray<CallRecord> =>
  records.filter(({ call, submittedAtMs }) => call.lane === lane && submittedAtMs < scenario.durationMs)

const refusalsOf = ({ log, scenario }: Run, lane: string): number => {
  let refused = 0
  for (const entry of log) {
    if (entry.kind !== 'refused' || entry.lane !== lane || isStranger(entry)) continue
    if (entry.at < scenario.durationMs) refused += 1
  }
  return refused
}

export const measure = (run: Run): Measured => {
  const { durationMs } = run.scenario
  const waits = primaryWaits(run)
  const primaries = counted(run, 'primary')
  const refusals = { primary: refusalsOf(run, 'primary'), auxiliary: refusalsOf(run, 'auxiliary') }
  const accepted = run.records.filter(
    ({ acceptedAtMs }) => acceptedAtMs !== null && acceptedAtMs < durationMs,
  )
  const auxiliaryTokensServed = counted(run, 'auxiliary')
    .filter(({ acceptedAtMs }) => acceptedAtMs !== null && acceptedAtMs < durationMs)
    .reduce((sum, { call }) => sum + call.inputTokens, 0)
  return {
    primaryWaitMs: { p50: nearestRank(waits, 0.5), p95: nearestRank(waits, 0.95), max: waits.at(-1) ?? null },
    primariesUnserved: primaries.filter(({ acceptedAtMs }) => acceptedAtMs === null).length,
    auxiliaryTokensServed,
    auxiliaryMaxDeferralMs: auxiliaryWaits(run).at(-1) ?? 0,
    refusals,
    jain: jainOf(run),
    jainOfEquals: jainOfEquals(run),
    refusalsPerAccepted: (refusals.primary + refusals.auxiliary) / Math.max(1, accepted.length),
    acceptedTokens: accepted.reduce((sum, { call }) => sum + call.inputTokens, 0),
    utilization: utilizationOf(run),
    meanPrimaryWaitMs: waits.length === 0 ? 0 : waits.reduce((sum, wait) => sum + wait, 0) / waits.length,
  }
}

const waitFloorMs = 1_000

const allRefusals = ({ refusals }: Metrics): number => refusals.primary + refusals.auxiliary

const waitRatio = (own: Measured, other: { readonly meanPrimaryWaitMs: number }): number =>
  (own.meanPrimaryWaitMs + waitFloorMs) / (other.meanPrimaryWaitMs + waitFloorMs)

export interface Yardsticks {
  readonly oracle: Measured
  readonly clairvoyant: Bound
  readonly naive: Measured
}

export const compare = (own: Measured, { oracle, clairvoyant, naive }: Yardsticks): Ratios => ({
  primaryWaitVsOracle: waitRatio(own, oracle),
  primaryWaitVsClairvoyant: waitRatio(own, clairvoyant),
  auxiliaryTokensVsClairvoyant: Number.isFinite(clairvoyant.auxiliaryTokens)
    ? own.auxiliaryTokensServed / Math.max(1, clairvoyant.auxiliaryTokens)
    : null,
  auxiliaryTokensVsOracle:
    oracle.auxiliaryTokensServed === 0 ? 1 : own.auxiliaryTokensServed / oracle.auxiliaryTokensServed,
  refusalsVsNaive: allRefusals(own) / Math.max(1, allRefusals(naive)),
})
