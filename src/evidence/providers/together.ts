import { type Finding, hasCode, type ProviderReader, type Signal } from '../answer.ts'
import { dimensionFinding } from '../dimension.ts'

const read = (signal: Signal): Finding | null => {
  // Dynamic limits are rates per second that rise with steady traffic.
  if (hasCode(signal, /^dynamic_request_limited$/)) {
    return dimensionFinding({ noun: 'requests', window: 'second', limit: null }, 'model', {})
  }
  if (hasCode(signal, /^dynamic_token_limited$/)) {
    return dimensionFinding({ noun: 'tokens', window: 'second', limit: null }, 'model', {})
  }
  return null
}

/** Together: `error_type` beside the error tells which dynamic limit refused. */
export const together: ProviderReader = {
  family: 'together',
  recognises: (signal) => hasCode(signal, /^(?:dynamic_\w+_limited|model_rate_limit)$/),
  read,
  overloadScope: 'model',
  rateLimitScope: 'credential',
}
