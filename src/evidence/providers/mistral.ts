import { type Finding, hasCode, type ProviderReader, type Signal } from '../answer.ts'
import { dimensionFinding, readDimension } from '../dimension.ts'

const tierCapacity = /\bservice tier capacity exceeded\b/i

const read = (signal: Signal): Finding | null => {
  // The type is sometimes `invalid_request_error`; the sentence and the code 3505 mean load, not a fault of
  // the request.
  if (hasCode(signal, /^(?:3505|service_tier_capacity_exceeded)$/) || tierCapacity.test(signal.text)) {
    return { kind: 'overloaded', scope: 'model', retryable: true }
  }
  const dimension = hasCode(signal, /^(?:1300|rate_limited)$/) ? readDimension(signal.text) : null
  // Requests are counted for the whole workspace, tokens for each model.
  return dimension === null
    ? null
    : dimensionFinding(dimension, dimension.noun === 'requests' ? 'credential' : 'model', {})
}

/** Mistral: flat errors with numeric codes. */
export const mistral: ProviderReader = {
  family: 'mistral',
  recognises: (signal) => hasCode(signal, /^(?:1300|3505)$/) || tierCapacity.test(signal.text),
  read,
  overloadScope: 'model',
  rateLimitScope: 'credential',
}
