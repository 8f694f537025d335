/** What answers say about capacity: evidence in refusals, limits in heads. Never keeps text. */
import type { Evidence, LimitReading } from '../../../machines/index.ts'
import { classify, readLimits } from '../../evidence/index.ts'
import type { AnswerHead } from '../passage/transport.ts'
import { decodedWhole, isEncoded } from './decoding.ts'

/** Of an encoded refusal, what is decoded at most, bytes. */
const mostRefusalBytes = 1024 * 1024

/** A refusal's body without its encoding; empty when nobody can read it. */
export const refusalBody = ({ headers }: Pick<AnswerHead, 'headers'>, body: Buffer): Buffer => {
  const encoding = headers['content-encoding']
  if (encoding === undefined || !isEncoded(encoding)) return body
  return decodedWhole(encoding, body, mostRefusalBytes) ?? Buffer.alloc(0)
}

/** What a refusal or a failure says about capacity; null when it says nothing. */
export const capacityEvidence = (
  provider: string,
  { status, headers }: AnswerHead,
  body: Buffer,
  receivedAt: number,
): Evidence | null => {
  const plain = refusalBody({ headers }, body)
  const evidence = classify({ provider, status, headers, body: plain.toString('utf8'), receivedAt })
  return evidence.kind === 'not-capacity' ? null : evidence
}

const plainDimensions: ReadonlySet<string> = new Set<LimitReading['dimension']>([
  'requests-per-minute',
  'requests-per-day',
  'tokens-per-minute',
  'tokens-per-day',
  'input-tokens-per-minute',
  'output-tokens-per-minute',
])

const isPlain = (limit: { readonly dimension: string }): limit is LimitReading =>
  plainDimensions.has(limit.dimension)

/** How often the limits of one scope are read from successes at most, milliseconds: they say the same again and again. */
const readEveryMs = 100

/** Reads limits from the heads of answers, of the kinds that a budget knows. */
export class LimitReader {
  readonly #readAtMs = new Map<string, number>()

  forget(scope: string): void {
    this.#readAtMs.delete(scope)
  }

  /** Empty when the head shows none, or was not worth reading. A refusal's head is always read. */
  read(scope: string, provider: string, head: AnswerHead, receivedAtMs: number): ReadonlyArray<LimitReading> {
    const last = this.#readAtMs.get(scope) ?? Number.NEGATIVE_INFINITY
    if (head.status < 300 && receivedAtMs < last + readEveryMs) return []
    if (!showsLimits(head)) return []
    this.#readAtMs.set(scope, receivedAtMs)
    return readLimits(provider, head.headers, receivedAtMs).filter(isPlain)
  }
}

const showsLimits = ({ headers }: AnswerHead): boolean => {
  for (const name in headers) if (/rate-?limit|tokenlimit/.test(name)) return true
  return false
}
