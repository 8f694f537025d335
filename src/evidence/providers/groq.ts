import type { Finding, ProviderReader, Signal } from '../answer.ts'

const read = (signal: Signal): Finding | null => {
  // 498 is Groq's own status: the flex tier gives way to all other traffic.
  return signal.status === 498 ? { kind: 'overloaded', scope: 'model', retryable: true } : null
}

/** Groq speaks OpenAI's sentences. Its `*-requests` headers always count days (see `headers.ts`). */
export const groq: ProviderReader = {
  family: 'groq',
  recognises: (signal) => signal.status === 498 || signal.headers.has('x-groq-region'),
  read,
  overloadScope: 'model',
  rateLimitScope: 'credential',
}
