/** Providers whose refusals the shared codes and sentences already read; only their scopes differ. */
import { hasCode, type ProviderReader } from '../answer.ts'

/** Fireworks: dynamic limits. `x-ratelimit-over-limit: yes` on a served answer is a warning and no refusal. */
export const fireworks: ProviderReader = {
  family: 'fireworks',
  recognises: (signal) => signal.headers.has('x-ratelimit-over-limit'),
  // 412: the account is suspended, for any precondition that the body names.
  read: (signal) =>
    signal.status === 412 || hasCode(signal, /^precondition_failed$/)
      ? { kind: 'quota-exhausted', scope: 'credential', retryable: false }
      : null,
  overloadScope: 'model',
  rateLimitScope: 'credential',
}

/** DeepSeek: one pool for everybody; its comments while a call is queued are no refusal. */
export const deepseek: ProviderReader = {
  family: 'deepseek',
  recognises: () => false,
  read: () => null,
  overloadScope: 'provider',
  rateLimitScope: 'credential',
}

/** vLLM: no keys and no rates, only a queue with a bound. The server is the provider. */
export const vllm: ProviderReader = {
  family: 'vllm',
  recognises: (signal) => /\bmax_num_queued_(?:reqs|tokens)\b/.test(signal.text),
  read: (signal) =>
    /\bmax_num_queued_(?:reqs|tokens)\b/.test(signal.text)
      ? { kind: 'overloaded', scope: 'provider', retryable: true }
      : null,
  overloadScope: 'provider',
  rateLimitScope: 'credential',
}
