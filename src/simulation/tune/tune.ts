/**
 * Candidate policies over one's own recorded traffic, against the provider as it is believed to be, on virtual time. The calls
 * come at their recorded times, whatever a policy does with them.
 */
import { type PolicyInput, parsePolicy, policyDifferences } from '../../../machines/index.ts'
import type { BelievedLimit } from '../../../machines/limits/belief/projection.ts'
import { rightofway } from '../arena/contenders.ts'
import { type Measured, measure } from '../arena/metrics.ts'
import { runPolicy } from '../arena/run.ts'
import type { Scenario } from '../arena/scenario.ts'
import { type BelievedProvider, familyConfidence, limitsOf, providersOf } from './provider.ts'
import type { Recording } from './recording.ts'

export interface Candidate {
  readonly name: string
  readonly policy: PolicyInput
}

/** The grid that is played. What a recording's policy states beyond these fields is kept in each of them. */
export const candidateFields: ReadonlyArray<Candidate> = [
  { name: 'adaptive', policy: { preset: 'adaptive' } },
  { name: 'adaptive, no room kept', policy: { preset: 'adaptive', tokenReserve: 0 } },
  { name: 'adaptive, deferral 30 s', policy: { preset: 'adaptive', maxDeferralMs: 30_000 } },
  { name: 'adaptive, deferral 10 min', policy: { preset: 'adaptive', maxDeferralMs: 600_000 } },
  { name: 'adaptive, held until settled', policy: { preset: 'adaptive', hold: 'untilSettled' } },
  { name: 'contract', policy: { preset: 'contract' } },
  { name: 'contract, room kept', policy: { preset: 'contract', tokenReserve: 'auto' } },
]

export interface Played extends Candidate {
  /** Under the best guess of the provider. */
  readonly result: Measured
}

export interface Tuning {
  readonly recording: Recording
  readonly limits: ReadonlyArray<BelievedLimit>
  /** In the order of the grid; the policy of the recording comes first. */
  readonly played: ReadonlyArray<Played>
  readonly recommended: Played
  /**
   * How sure the recommendation is, in [0, 1]: the weight of the believed kind of limit, times the share of the
   * guesses of its size (low, middle, high) under which the recommendation is within a tenth of the best.
   */
  readonly confidence: number
}

/** A policy is worth nothing to primaries that it serves at the cost of more than this share of the background's tokens. */
const leastTokensShare = 0.97
/** As good as the best: within this share of its wait. */
export const asGoodShare = 0.1
const waitFloorMs = 1_000

const costOf = ({ meanPrimaryWaitMs }: Measured): number => meanPrimaryWaitMs + waitFloorMs

/** The results that serve the most primaries, and of these enough background. */
const eligible = <A extends { readonly result: Measured }>(played: ReadonlyArray<A>): ReadonlyArray<A> => {
  const unserved = Math.min(...played.map(({ result }) => result.primariesUnserved))
  const serving = played.filter(({ result }) => result.primariesUnserved === unserved)
  const most = Math.max(...serving.map(({ result }) => result.auxiliaryTokensServed))
  return serving.filter(({ result }) => result.auxiliaryTokensServed >= most * leastTokensShare)
}

/** The first that is within 1 % of the least wait: an earlier one is the simpler one. */
export const bestOf = <A extends { readonly result: Measured }>(played: ReadonlyArray<A>): A => {
  const candidates = eligible(played)
  const least = Math.min(...candidates.map(({ result }) => costOf(result)))
  return candidates.find(({ result }) => costOf(result) <= least * 1.01)!
}

/** Whether the policy of that name is as good as the best one. */
export const isAsGood = (played: ReadonlyArray<Played>, name: string): boolean => {
  const candidates = eligible(played)
  const own = candidates.find((one) => one.name === name)
  const least = Math.min(...candidates.map(({ result }) => costOf(result)))
  return own !== undefined && costOf(own.result) <= least * (1 + asGoodShare)
}

const scenarioOf = (recording: Recording, { rules, guess }: BelievedProvider): Scenario => ({
  name: `${recording.scope}, ${guess}`,
  seed: 1,
  durationMs: recording.durationMs,
  description: '',
  provider: {
    rules,
    states: null,
    concurrency: null,
    latency: { firstTokenMs: recording.firstTokenMs, perOutputTokenMs: recording.perOutputTokenMs },
    answers: { headersLagMs: 0, headersFactor: 1, kindBlind: false, refusalsLateMs: 0 },
    strangers: [],
  },
  traffic: recording.streams,
})

/** The fields of the recorded policy that belong to the operator, not to a preset: kept in every candidate. */
const ownFields = ({ context: { policy } }: Recording): PolicyInput => {
  const { capacity, limits, charges, weights, quotas, principalQuota, qos } = policy
  return { capacity, limits, charges, weights, quotas, principalQuota, qos }
}

export const candidatesOf = (recording: Recording): ReadonlyArray<Candidate> => {
  const own = ownFields(recording)
  return [
    { name: 'as recorded', policy: recording.context.policy },
    ...candidateFields.map(({ name, policy }) => ({
      name,
      policy: policyDifferences(parsePolicy({ ...own, ...policy })),
    })),
  ]
}

/** Plays the candidates over a scenario. */
export const playAll = (
  scenario: Scenario,
  recording: Recording,
  candidates: ReadonlyArray<Candidate>,
): ReadonlyArray<Played> =>
  candidates.map((candidate) => ({
    ...candidate,
    result: measure(runPolicy(scenario, rightofway(candidate.policy), { traces: recording.traces })),
  }))

export const tune = (recording: Recording): Tuning => {
  const candidates = candidatesOf(recording)
  const byGuess = providersOf(recording).map((provider) =>
    playAll(scenarioOf(recording, provider), recording, candidates),
  )
  const played = byGuess[0]!
  const recommended = bestOf(played)
  const agreeing = byGuess.filter((guessed) => isAsGood(guessed, recommended.name)).length
  return {
    recording,
    limits: limitsOf(recording),
    played,
    recommended,
    confidence: familyConfidence(recording) * (agreeing / byGuess.length),
  }
}
