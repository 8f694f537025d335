import type { Finding, ProviderReader, Signal } from '../answer.ts'
import { dimensionFinding, readNumber } from '../dimension.ts'

/** Every deployment pauses after refusals. The wait is the gateway's own, not its provider's. */
const cooldown = /\bno deployments available\b/i
const keyLimit = /\blimit type: (requests|tokens|max_parallel_requests)\b/i

const read = (signal: Signal): Finding | null => {
  if (cooldown.test(signal.text)) return { kind: 'unknown-rate-limit', scope: 'model', retryable: true }
  const name = keyLimit.exec(signal.text)?.[1]?.toLowerCase() ?? crossedCounter(signal.text)
  if (name === 'requests' || name === 'tokens') {
    return dimensionFinding({ noun: name, window: 'minute', limit: null }, 'credential', {})
  }
  return name === 'max_parallel_requests'
    ? { kind: 'concurrency', scope: 'credential', retryable: true }
    : null
}

/** An older message lists all counters beside their limits; the counter at its limit caused the refusal. */
const crossedCounter = (text: string): string | null => {
  const counters = [
    ['requests', /\bcurrent rpm: (\d{1,15}), rpm limit: (\d{1,15})/],
    ['tokens', /\bcurrent tpm: (\d{1,15}), tpm limit: (\d{1,15})/],
    [
      'max_parallel_requests',
      /\bcurrent max_parallel_requests: (\d{1,15}), max_parallel_requests: (\d{1,15})/,
    ],
  ] as const
  const crossed = counters.find(([, pattern]) => {
    const [, current, limit] = pattern.exec(text) ?? []
    return (readNumber(current) ?? -1) >= (readNumber(limit) ?? Number.POSITIVE_INFINITY)
  })
  return crossed?.[0] ?? null
}

/** LiteLLM: mostly a prefix around a provider's answer, which unwrapping removes; these are its own limits. */
export const litellm: ProviderReader = {
  family: 'litellm',
  recognises: (signal) =>
    cooldown.test(signal.text) || keyLimit.test(signal.text) || crossedCounter(signal.text) !== null,
  read,
  overloadScope: 'provider',
  rateLimitScope: 'credential',
}
