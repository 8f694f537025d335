/** A limit per minute as a client keeps it: a bucket whose rate, burst and level it is told or learns. */
import type { LimitFact } from '../../../emulator/index.ts'

const minuteMs = 60_000
/** Shortest time between refusals that a rate is learnt from, ms. */
const shortestSpanMs = 10_000
/** How much of a newly measured rate is believed at once. */
const believed = 0.5
/** How much a learnt rate grows with each ms without a refusal, so that a limit that rose is found. */
const growthPerMs = 0.1 / minuteMs

export class LearntBucket {
  /** Units per ms; null while nothing is known. */
  #perMs: number | null
  #burst = Number.POSITIVE_INFINITY
  #level = Number.POSITIVE_INFINITY
  #atMs = 0
  /** Headers or a page said the rate: refusals do not change it. */
  #said: boolean
  /** Accepted since the newest refusal that a rate is measured from. */
  #sinceRefusal: { readonly atMs: number; units: number } | null = null

  constructor(perMinute: number | null) {
    this.#perMs = null
    this.#said = false
    if (perMinute !== null) this.stated(perMinute)
  }

  get known(): boolean {
    return this.#perMs !== null && Number.isFinite(this.#level)
  }

  /** Most that it holds; Infinity while unknown. */
  get burst(): number {
    return this.#burst
  }

  /** When it holds so many, ms; now for more than it ever holds once it is full, and while it is unknown. */
  holdsAtMs(units: number, nowMs: number): number {
    if (!this.known) return nowMs
    this.#refill(nowMs)
    const missing = Math.min(units, this.#burst) - this.#level
    return missing <= 0 ? nowMs : nowMs + Math.ceil(missing / this.#perMs!)
  }

  take(units: number, nowMs: number): void {
    this.#refill(nowMs)
    this.#level -= units
  }

  giveBack(units: number, nowMs: number): void {
    this.#refill(nowMs)
    this.#level = Math.min(this.#burst, this.#level + units)
  }

  accepted(units: number, sentAtMs: number): void {
    if (this.#sinceRefusal !== null && sentAtMs > this.#sinceRefusal.atMs) this.#sinceRefusal.units += units
    if (units > this.#burst) this.#burst = units
  }

  /** A header's limit, what is left, and when it is whole again. */
  read({ limit, remaining, resetAtMs }: LimitFact, nowMs: number): void {
    this.#said = true
    this.#perMs = limit / minuteMs
    this.#level = remaining
    this.#atMs = nowMs
    this.#burst = Math.max(1, remaining + Math.max(0, resetAtMs - nowMs) * this.#perMs)
  }

  /** A limit per minute, of a page or a refusal: a burst of one minute is assumed, and a full start. */
  stated(perMinute: number): void {
    this.#said = true
    this.#perMs = perMinute / minuteMs
    if (!Number.isFinite(this.#burst)) this.#burst = perMinute
    this.#level = Math.min(this.#level, this.#burst)
  }

  /** So much would fit after so long. */
  waits(units: number, retryAfterMs: number, nowMs: number): void {
    if (this.#perMs === null) return
    this.#refill(nowMs)
    this.#level = Math.min(this.#level, units - retryAfterMs * this.#perMs)
  }

  /** It held less, and nothing said how much less: halfway is the guess. */
  refused(units: number, nowMs: number): void {
    const { atMs, units: accepted } = this.#sinceRefusal ?? { atMs: nowMs, units: 0 }
    const spanMs = nowMs - atMs
    if (!this.#said && spanMs >= shortestSpanMs && accepted > 0) {
      const measured = accepted / spanMs
      this.#perMs = this.#perMs === null ? measured : this.#perMs + believed * (measured - this.#perMs)
    }
    if (this.#sinceRefusal === null || spanMs >= shortestSpanMs)
      this.#sinceRefusal = { atMs: nowMs, units: 0 }
    if (this.#perMs === null) return
    this.#refill(nowMs)
    this.#level = Math.min(this.#level, units / 2)
    this.#burst = Math.max(Number.isFinite(this.#burst) ? this.#burst : 0, units, this.#perMs * minuteMs)
  }

  #refill(nowMs: number): void {
    if (this.#perMs !== null) {
      const passedMs = nowMs - this.#atMs
      this.#level = Math.min(this.#burst, this.#level + passedMs * this.#perMs)
      if (!this.#said) this.#perMs *= 1 + growthPerMs * passedMs
    }
    this.#atMs = nowMs
  }
}
