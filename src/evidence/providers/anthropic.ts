import type { Finding, ProviderReader, Signal } from '../answer.ts'
import { hasCode } from '../answer.ts'
import { readDimension } from '../dimension.ts'
import { parseReset } from '../headers.ts'
import { acceleration, isRateLimited } from '../sentences.ts'

/** A feature of one request that the account is not entitled to. Smaller requests still pass. */
const entitlementGate =
  /\blong[- ]context\b.{0,80}\b(?:required?|not (?:yet )?(?:available|enabled))|\brequired for long[- ]context\b/i
/** Subscription windows, longest first. Their resets are epoch seconds. */
const subscriptionWindows = ['7d_opus', '7d_sonnet', '7d', '5h'] as const

const read = (signal: Signal): Finding | null => {
  if (entitlementGate.test(signal.text)) return { kind: 'not-capacity', scope: 'model', retryable: false }
  // The sentence about the slope also names a dimension; it must not pass for that dimension's own limit.
  if (/\busage increase rate\b/i.test(signal.text)) return acceleration(signal.text)
  if (hasCode(signal, /^overloaded_error$/)) return { kind: 'overloaded', scope: 'provider', retryable: true }
  const rejected = signal.headers.get('anthropic-ratelimit-unified-status') === 'rejected'
  if (!rejected || !isRateLimited(signal) || readDimension(signal.text) !== null) return null
  return subscriptionFinding(signal)
}

/** The allowance of a subscription is used up. It comes back by itself, hours or days later. */
const subscriptionFinding = (signal: Signal): Finding => {
  const prefix = 'anthropic-ratelimit-unified-'
  const window = subscriptionWindows.find(
    (name) => signal.headers.get(`${prefix}${name}-status`) === 'rejected',
  )
  const reset = signal.headers.get(`${prefix}reset`) ?? signal.headers.get(`${prefix}${window ?? ''}-reset`)
  const atMs = parseReset(reset ?? '')?.atMs ?? null
  const waitMs =
    atMs === null || signal.receivedAtMs === null ? null : Math.max(0, atMs - signal.receivedAtMs)
  // A window of one class of models leaves the account's other models free.
  const scope = window?.includes('_') === true && !wholeAccount(signal) ? 'model' : 'credential'
  return { kind: 'quota-exhausted', scope, retryable: true, waitMs }
}

const wholeAccount = (signal: Signal): boolean =>
  ['7d', '5h'].some((name) => signal.headers.get(`anthropic-ratelimit-unified-${name}-status`) === 'rejected')

/** Anthropic: token buckets per model class; load across all users is its own status, 529. */
export const anthropic: ProviderReader = {
  family: 'anthropic',
  recognises: (signal) =>
    hasCode(signal, /^overloaded_error$/) ||
    /\busage increase rate\b|\brequired for long[- ]context\b/i.test(signal.text) ||
    signal.headers.has('anthropic-ratelimit-unified-status') ||
    signal.headers.has('anthropic-ratelimit-requests-limit'),
  read,
  overloadScope: 'provider',
  rateLimitScope: 'credential',
}
