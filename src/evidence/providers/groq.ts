import { type Finding, hasCode, type ProviderReader, type Signal } from '../answer.ts'

const capacityWords = /\bflex\b|\bcapacity\b|\boverloaded\b/i
const keyWords = /\b(?:invalid|expired|missing|unknown|revoked)\b.{0,24}\b(?:token|key|credentials?)\b/i

const read = (signal: Signal): Finding | null => {
  if (signal.status !== 498 || keyWords.test(signal.text)) return null
  // To Groq the flex tier gives way to everyone else; to others 498 is a token that is not valid.
  const isGroq = signal.declared === 'groq' || signal.headers.has('x-groq-region')
  return isGroq || capacityWords.test(signal.text) || hasCode(signal, /capacity/)
    ? { kind: 'overloaded', scope: 'model', retryable: true }
    : null
}

/** Groq speaks OpenAI's sentences. Its `*-requests` headers always count days (see `headers.ts`). */
export const groq: ProviderReader = {
  family: 'groq',
  recognises: (signal) => signal.status === 498 || signal.headers.has('x-groq-region'),
  read,
  overloadScope: 'model',
  rateLimitScope: 'credential',
}
