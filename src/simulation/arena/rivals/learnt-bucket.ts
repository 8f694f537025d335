/** A client's view of a limit per minute: a bucket whose rate, burst and level it is told or learns. */
import type { LimitFact } from '../../../emulator/index.ts'

const minuteMs = 60_000
/** Shortest time between refusals from which a rate is learnt, ms. */
const shortestSpanMs = 10_000
/** The share of a newly measured rate in the new estimate. */
const believed = 0.5
/** Growth of a learnt rate per ms without a refusal, so that a raised limit is found. */
const growthPerMs = 0.1 / minuteMs

export class LearntBucket {
  /** Units per ms; null while unknown. */
  #perMs: number | null
  #burst = Number.POSITIVE_INFINITY
  #level = Number.POSITIVE_INFINITY
  #atMs = 0
  /** Headers or a page stated the rate: refusals do not change it. */
  #said: boolean
  /** Units accepted since the refusal from which a rate is measured. */
  #sinceRefusal: { readonly atMs: number; units: number } | null = null

  constructor(perMinute: number | null) {
    this.#perMs = null
    this.#said = false
    if (perMinute !== null) this.stated(perMinute)
  }

  get known(): boolean {
    return this.#perMs !== null && Number.isFinite(this.#level)
  }

  /** The bucket's capacity; Infinity while unknown. */
  get burst(): number {
    return this.#burst
  }

  /** When the bucket holds `units`, ms. Now while it is unknown; when full, for units above its capacity. */
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

  /** Reads a header's limit, remainder and reset. */
  read({ limit, remaining, resetAtMs }: LimitFact, nowMs: number): void {
    this.#said = true
    this.#perMs = limit / minuteMs
    this.#level = remaining
    this.#atMs = nowMs
    this.#burst = Math.max(1, remaining + Math.max(0, resetAtMs - nowMs) * this.#perMs)
  }

  /** Takes a limit per minute from a page or a refusal. Assumes a burst of one minute and a full start. */
  stated(perMinute: number): void {
    this.#said = true
    this.#perMs = perMinute / minuteMs
    if (!Number.isFinite(this.#burst)) this.#burst = perMinute
    this.#level = Math.min(this.#level, this.#burst)
  }

  /** A call of `units` would fit after this wait. */
  waits(units: number, retryAfterMs: number, nowMs: number): void {
    if (this.#perMs === null) return
    this.#refill(nowMs)
    this.#level = Math.min(this.#level, units - retryAfterMs * this.#perMs)
  }

  /** The bucket held less, and the refusal did not tell how much: the middle is the guess. */
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
