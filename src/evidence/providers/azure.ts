import type { Finding, ProviderReader, Signal } from '../answer.ts'
import { hasCode } from '../answer.ts'
import { type Dimension, dimensionFinding } from '../dimension.ts'

/** API Management's call, bandwidth and token allowances. They renew with their period. */
const renewedQuota =
  /\bquota will be (?:replenished|renewed|reset)\b|\bout of (?:call volume|bandwidth) quota\b|\btoken quota is exceeded\b/i
const tokenLimit = /\btoken limit is exceeded\b/i
/** The model catalogue names its counters: `UserByModelByDay`, `UserByMinute`, `UserConcurrentRequests`. */
const counter = /\bexceeded for (User\w{3,60})/
const pricingTier = /\bAzure OpenAI\b|\bpricing tier\b|\bswitching to Provisioned Throughput\b/i

const read = (signal: Signal): Finding | null => {
  const { text } = signal
  if (renewedQuota.test(text)) return { kind: 'quota-exhausted', scope: 'credential', retryable: true }
  if (tokenLimit.test(text)) return dimensionFinding(perMinute('tokens'), 'model', {})
  const name = counter.exec(text)?.[1]
  return name === undefined ? null : counterFinding(name)
}

const counterFinding = (name: string): Finding => {
  const scope = name.includes('Model') ? 'model' : 'credential'
  if (name.includes('Concurrent')) return { kind: 'concurrency', scope, retryable: true }
  const noun = nounOfCounter(name)
  return dimensionFinding(
    name.includes('Day') ? { noun, window: 'day', limit: null } : perMinute(noun),
    scope,
    {},
  )
}

const nounOfCounter = (name: string): Dimension['noun'] => {
  if (!name.includes('Token')) return 'requests'
  if (/Input|Prompt/.test(name)) return 'input-tokens'
  return /Output|Completion|Generated/.test(name) ? 'output-tokens' : 'tokens'
}

const perMinute = (noun: Dimension['noun']): Dimension => {
  return { noun, window: 'minute', limit: null }
}

/**
 * Azure OpenAI and the gateway in front of it. Limits are per deployment, so the scope is always the model.
 */
export const azure: ProviderReader = {
  family: 'azure',
  recognises: (signal) =>
    pricingTier.test(signal.text) ||
    renewedQuota.test(signal.text) ||
    counter.test(signal.text) ||
    hasCode(signal, /^no_capacity$/) ||
    ['apim-request-id', 'x-ms-region', 'azureml-model-session', 'policy-id'].some((name) =>
      signal.headers.has(name),
    ),
  read,
  overloadScope: 'model',
  rateLimitScope: 'model',
}
