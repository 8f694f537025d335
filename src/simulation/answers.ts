/** Changes a provider's answers on their way to the client: late, wrong or less detailed. */
import type { LimitFact } from '../emulator/index.ts'
import type { Refusal } from '../emulator/rules/rule.ts'

/** The part of a refusal that a client can see; the rest is the provider's own truth. */
export type VisibleRefusal = Pick<Refusal, 'retryAfterMs' | 'permanent'> & {
  readonly kind: Refusal['kind'] | 'unknown-rate-limit'
  readonly currentLimit?: number
  readonly nextLimit?: number
}

export interface Answers {
  /** Age of the numbers in headers, ms. */
  readonly headersLagMs: number
  /** The factor on limits and remainders in headers. */
  readonly headersFactor: number
  /** Every refusal is a plain 429: neither kind nor ceiling, only the wait where one is stated. */
  readonly kindBlind: boolean
  /** How long a refusal travels, ms. */
  readonly refusalsLateMs: number
}

export const faithfulAnswers: Answers = {
  headersLagMs: 0,
  headersFactor: 1,
  kindBlind: false,
  refusalsLateMs: 0,
}

export const refusalHeard = (refusal: VisibleRefusal, { kindBlind }: Answers): VisibleRefusal =>
  kindBlind ? { kind: 'unknown-rate-limit', retryAfterMs: refusal.retryAfterMs, permanent: false } : refusal

/** Headers as the client sees them: older numbers, larger or smaller than the truth. */
export class HeaderView {
  readonly #answers: Answers
  readonly #past: Array<{ readonly atMs: number; readonly limits: ReadonlyArray<LimitFact> }> = []

  constructor(answers: Answers) {
    this.#answers = answers
  }

  /** Takes the present truth and returns the numbers that are shown now. Times never go back. */
  shown(limits: ReadonlyArray<LimitFact>, atMs: number): ReadonlyArray<LimitFact> {
    const { headersLagMs, headersFactor } = this.#answers
    if (headersLagMs > 0) this.#past.push({ atMs, limits })
    while (this.#past.length > 1 && this.#past[1]!.atMs <= atMs - headersLagMs) this.#past.shift()
    const seen = headersLagMs > 0 ? this.#past[0]!.limits : limits
    if (headersFactor === 1) return seen
    return seen.map((fact) => ({
      ...fact,
      limit: Math.floor(fact.limit * headersFactor),
      remaining: Math.floor(fact.remaining * headersFactor),
    }))
  }
}
