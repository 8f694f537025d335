/** The presets: whole policies by name. */
import { defaultCharges } from './charges.ts'
import type { Limits, Policy, PresetName } from './policy.ts'

export const noLimits: Limits = {
  requestsPerMinute: null,
  requestsPerDay: null,
  inputTokensPerMinute: null,
  inputTokensPerDay: null,
  outputTokensPerMinute: null,
  outputTokensPerDay: null,
}

/**
 * The contract to the letter: auxiliaries in flight settle first, and the gate stays closed until the primary has
 * settled. Policies in journals are completed from it, so a field that is added is given what scopes did before, or
 * that is said in `asBefore`.
 */
export const contractPolicy: Policy = {
  preset: 'contract',
  capacity: 32,
  capacityFloor: null,
  reserve: 'auto',
  reserveFraction: 0.34,
  tokenReserve: 0,
  squeezeMs: 0,
  inFlight: 'settle',
  toleratedInFlight: 0,
  patienceMs: 30_000,
  afterPatience: 'proceed',
  graceMs: 5_000,
  quietWindowMs: 60_000,
  strategy: 'adaptive',
  hold: 'untilSettled',
  quantumTokens: 64_000,
  drainIntervalMs: 1_000,
  maxDeferralMs: 120_000,
  maxRankDeferralMs: 60_000,
  favor: 'begunInPrincipal',
  lingerMs: 5_000,
  primaryPendingTimeoutMs: 30 * 60_000,
  primaryActiveTimeoutMs: 30 * 60_000,
  auxiliaryPendingTimeoutMs: 6 * 60 * 60_000,
  auxiliaryActiveTimeoutMs: 15 * 60_000,
  turnTimeoutMs: 60 * 60_000,
  maxAttempts: 60,
  pacingBaseMs: 250,
  pacingMaxMs: 8_000,
  quotaHoldMs: 5 * 60_000,
  unclaimedExpiryMs: 10 * 60_000,
  settledRetention: 4_096,
  settledRetentionMs: 0,
  unknownRetentionMs: 7 * 24 * 60 * 60_000,
  unknownAfterRestart: 'report',
  limits: noLimits,
  charges: defaultCharges,
  weights: {},
  quotas: {},
  principalQuota: null,
  qos: null,
}

/**
 * For a provider that charges input tokens when it accepts a call, as the large providers do. Running calls
 * do not delay a primary there, so no primary waits for an answer to end.
 */
export const adaptivePolicy: Policy = {
  ...contractPolicy,
  preset: 'adaptive',
  capacityFloor: 4,
  // A pending primary closes the gate and gets the next place; no place has to stay empty for it.
  reserve: 0,
  tokenReserve: 'auto',
  inFlight: 'tolerate',
  hold: 'untilAccepted',
}

/** A worker pool or a read lane: the same machine with a capacity and without budgets. */
export const poolPolicy: Policy = {
  ...contractPolicy,
  preset: 'pool',
  // These calls have no tokens: a turn is one call.
  quantumTokens: 1,
  inFlight: 'tolerate',
  quietWindowMs: 0,
  hold: 'whileWaiting',
  drainIntervalMs: 0,
  lingerMs: 0,
}

/** The presets by name. */
export const policyPresets: Readonly<Record<PresetName, Policy>> = {
  contract: contractPolicy,
  adaptive: adaptivePolicy,
  pool: poolPolicy,
}

/** The preset of a scope that names none: a large conversation call against background calls, under limits that nobody told us. */
export const defaultPolicy = adaptivePolicy
