/** How long evidence holds a scope: for the stated time as far as it is believed, or for the policy's time. */
import type { Evidence, Policy, ScopeContext } from '../../machines/index.ts'
import { maxEpochMs } from '../../machines/model/call.ts'
import { evidenceKinds } from '../../machines/model/evidence.ts'
import { scopeParts } from './scope-name.ts'

/** A stated wait is believed this long, milliseconds. Then one call finds out, and a wait that is true is stated again. */
export const longestBeliefMs = 24 * 60 * 60_000

/**
 * The evidence with the hold that it causes. The hold is part of the journalled event, so a journal decides
 * the same under a version that believes longer or shorter.
 */
export const withHold = (evidence: Evidence, { quotaHoldMs }: Pick<Policy, 'quotaHoldMs'>): Evidence => {
  const { kind, retryAfterMs, retryable, scope } = evidence
  if (retryAfterMs !== null) {
    if (retryAfterMs <= longestBeliefMs) return evidence
    // A stated time has no bound; an event's times end with the calendar.
    return { ...evidence, retryAfterMs: Math.min(retryAfterMs, maxEpochMs), holdMs: longestBeliefMs }
  }
  // An empty allowance of one model that nothing brings back is no reason to ask again later.
  const holds = kind === 'quota-exhausted' && (retryable || scope !== 'model')
  return holds ? { ...evidence, holdMs: quotaHoldMs } : evidence
}

/** Whether evidence holds the scopes that share its credential or its host, and not only the one that met it. */
export const holdsOthers = ({ scope, kind, retryable, retryAfterMs, holdMs }: Evidence): boolean =>
  scope !== 'model' &&
  (retryable || kind === 'quota-exhausted') &&
  (holdMs !== undefined || retryAfterMs !== null)

/** A wait of more than its own scope, as evidence for a scope that is met while it lasts; null for any other. */
export const inherited = (wait: ScopeContext['wait'], nowMs: number): Evidence | null => {
  if (wait === null || wait.reach === undefined || wait.untilMs <= nowMs) return null
  // A call is finding out whether it is over: the new scope may find out for itself.
  if (wait.probeId !== null) return null
  const { reach, untilMs, statedUntilMs = untilMs } = wait
  const kind = evidenceKinds.find((each) => each === wait.kind) ?? 'unknown-rate-limit'
  const holdMs = untilMs - nowMs
  return {
    kind,
    scope: reach,
    retryAfterMs: Math.min(statedUntilMs - nowMs, maxEpochMs),
    retryable: true,
    facts: {},
    holdMs,
  }
}

/** Whether evidence of this scope, met under the one name, speaks of the other. A free name stands alone. */
export const reaches = (scope: Evidence['scope'], from: string, to: string): boolean => {
  const [source, other] = [scopeParts(from), scopeParts(to)]
  if (source === null || other === null || other.provider !== source.provider) return false
  return scope === 'provider' || (scope === 'credential' && other.credential === source.credential)
}
