import type { EvidenceFacts } from '../../../machines/model/evidence.ts'
import type { Finding, ProviderReader, Signal } from '../answer.ts'
import { type Dimension, kindOf, readNumber, windowOf, windowOrder } from '../dimension.ts'

const tally =
  /\b(requests|tokens) per (second|minute|hour|day|month) \(actual\/limit\):? {0,2}(\d[\d,.]{0,20})\/(\d[\d,.]{0,20})/gi

interface Tally extends Dimension {
  readonly facts: EvidenceFacts
  readonly reached: boolean
}

const read = (signal: Signal): Finding | null => {
  const tallies = [...signal.text.matchAll(tally)].map(([, noun, window, actual, limit]) =>
    tallyOf(noun, window, actual, limit),
  )
  const reached = tallies.filter((each) => each.reached)
  const [binding] = (reached.length > 0 ? reached : tallies).toSorted(
    (left, right) => windowOrder.indexOf(right.window) - windowOrder.indexOf(left.window),
  )
  if (binding === undefined) return null
  // 0/0 means that this team has no allocation for the model.
  return { kind: kindOf(binding), scope: 'model', retryable: binding.facts.limit !== 0, facts: binding.facts }
}

const tallyOf = (noun = '', window = '', actualText = '', limitText = ''): Tally => {
  const actual = readNumber(actualText.replace(/[.,]+$/, ''))
  const limit = readNumber(limitText.replace(/[.,]+$/, ''))
  return {
    noun: noun.toLowerCase() === 'tokens' ? 'tokens' : 'requests',
    window: windowOf(window),
    limit,
    facts: { ...(actual === null ? {} : { actual }), ...(limit === null ? {} : { limit }) },
    reached: actual !== null && limit !== null && actual >= limit,
  }
}

/** xAI: flat errors in which one sentence lists every limit with its measured use. */
export const xai: ProviderReader = {
  family: 'xai',
  recognises: (signal) => /\(actual\/limit\)/.test(signal.text),
  read,
  overloadScope: 'model',
  rateLimitScope: 'credential',
}
