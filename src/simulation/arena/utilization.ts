/** The used share of the provider's limits. */

import { type Run, rulesOf } from './run.ts'
import type { Scenario } from './scenario.ts'

const minuteMs = 60_000
const tokenRules: ReadonlySet<string> = new Set([
  'token-bucket',
  'changing-bucket',
  'token-window',
  'use-growth',
  'time-step',
  'slow-down',
])

/**
 * In [0, 1]; null when no rule limits the use.
 *
 * With a rule on input tokens per minute: at the end of each minute, the tokens accepted in it, divided by
 * these plus the tokens that one more call could still have had. Else, with a bound on calls at once: mean
 * calls in flight against the bound. Else, with a bound on output tokens or on requests per minute: the
 * tokens produced or the requests accepted against it.
 */
export const utilizationOf = (run: Run): number | null => {
  const rules = rulesOf(run.scenario)
  if (rules.some(({ rule }) => tokenRules.has(rule))) return ofTokens(run)
  for (const rule of rules) if (rule.rule === 'concurrency') return ofPlaces(run, rule.maxConcurrent)
  for (const rule of rules) {
    if (rule.rule === 'output-tokens-per-minute') return ofOutput(run, rule.outputTokensPerMinute)
    if (rule.rule === 'requests-per-minute') return ofRequests(run, rule.requestsPerMinute)
  }
  return null
}

const within = ({ durationMs }: Scenario, atMs: number): boolean => atMs < durationMs

const ofTokens = ({ scenario, log, minuteEnds }: Run): number => {
  const taken = log.reduce(
    (sum, { kind, at, inputTokens }) =>
      kind === 'accepted' && within(scenario, at) ? sum + inputTokens : sum,
    0,
  )
  const left = minuteEnds.reduce((sum, { roomTokens }) => sum + roomTokens, 0)
  return taken + left === 0 ? 1 : taken / (taken + left)
}

const ofPlaces = ({ scenario, log }: Run, places: number): number => {
  const { durationMs } = scenario
  let busyMs = 0
  for (const { kind, at } of log) {
    const restMs = Math.max(0, durationMs - at)
    if (kind === 'accepted') busyMs += restMs
    else if (kind !== 'refused') busyMs -= restMs
  }
  return busyMs / (places * durationMs)
}

/** A bucket that begins full gives one minute more. */
const given = (perMinute: number, { durationMs }: Scenario): number => perMinute * (1 + durationMs / minuteMs)

const ofOutput = ({ scenario, log }: Run, perMinute: number): number => {
  const produced = log.reduce(
    (sum, { at, outputTokens = 0 }) => (within(scenario, at) ? sum + outputTokens : sum),
    0,
  )
  // Calls in flight together can put the bucket in debt.
  return Math.min(1, produced / given(perMinute, scenario))
}

const ofRequests = ({ scenario, log }: Run, perMinute: number): number =>
  log.filter(({ kind, at }) => kind === 'accepted' && within(scenario, at)).length /
  given(perMinute, scenario)
