import type { Finding, ProviderReader, Signal } from '../answer.ts'
import { dimensionFinding, dimensionOfAbbreviation, readNumber, readTally } from '../dimension.ts'

/** All limits share one type; the word before the colon names the limit. */
const ceiling = /\bmax(?:imum)?(?: organization)? (concurrency|[RT]P[MD]): {0,2}(\d[\d,]{0,15})/i
const measured = /\borganization (?:max )?([RT]P[MD])\b/

const read = (signal: Signal): Finding | null => {
  const stated = ceiling.exec(signal.text)
  const limit = readNumber(stated?.[2])
  const facts = limit === null ? readTally(signal.text) : { limit }
  const word = stated?.[1] ?? measured.exec(signal.text)?.[1]
  if (word === undefined) return null
  if (/^concurrency$/i.test(word)) return { kind: 'concurrency', scope: 'credential', retryable: true, facts }
  return dimensionFinding({ ...dimensionOfAbbreviation(word), limit: null }, 'credential', facts)
}

/** Moonshot: limits of the whole organization. */
export const moonshot: ProviderReader = {
  family: 'moonshot',
  recognises: (signal) => ceiling.test(signal.text),
  read,
  overloadScope: 'provider',
  rateLimitScope: 'credential',
}
