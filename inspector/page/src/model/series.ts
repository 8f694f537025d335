/** Numbers over time, one sample per entry, and which state the scope was in from when to when. */
import type { ScopeContext, ScopeEvent } from '../../../../machines/index.ts'
import { scopeStatus } from '../../../../src/host/scope-facts.ts'
import type { ScopeStatus } from '../../../../src/host/status.ts'

export interface Band {
  readonly state: ScopeContext['state']
  readonly from: number
  /** Null while it lasts. */
  to: number | null
}

const columns = [
  'recentTokens',
  'ceilingLow',
  'ceilingHigh',
  'limitTokens',
  'primaryWaiting',
  'auxiliaryWaiting',
  'inFlight',
] as const
export type Column = (typeof columns)[number]

export type Sample = Readonly<Record<Column, number | null>>

/** What the plots show of a status. */
export const sampleOf = (status: ScopeStatus): Sample => ({
  recentTokens: status.recentInputTokens,
  ceilingLow: status.ceiling.low === 0 ? null : status.ceiling.low,
  ceilingHigh: status.ceiling.high,
  limitTokens: status.inputTokenLimit ?? status.lastRefusal?.statedLimit ?? null,
  primaryWaiting: status.primary.waiting,
  auxiliaryWaiting: status.auxiliary.waiting,
  inFlight: status.primary.inFlight + status.auxiliary.inFlight,
})

export class Series {
  /** Epoch milliseconds, rising. */
  readonly at: number[] = []
  readonly values: Readonly<Record<Column, Array<number | null>>> = {
    recentTokens: [],
    ceilingLow: [],
    ceilingHigh: [],
    limitTokens: [],
    primaryWaiting: [],
    auxiliaryWaiting: [],
    inFlight: [],
  }
  readonly bands: Band[] = []
  /** When the provider refused a call for its size. */
  readonly refusals: Array<{ readonly at: number; readonly tokens: number }> = []

  /** The context after an event. Samples of one millisecond are one sample. */
  add(context: ScopeContext, event?: ScopeEvent): void {
    const { at, state } = context
    const last = this.bands.at(-1)
    if (last?.state !== state) {
      if (last !== undefined) last.to = at
      this.bands.push({ state, from: at, to: null })
    }
    const { refusal } = context.belief
    if (event?.type === 'call.settled' && event.outcome === 'throttled' && refusal?.atMs === at) {
      this.refusals.push({ at, tokens: refusal.trailingTokens + refusal.tokens })
    }
    const index = this.at.at(-1) === at ? this.at.length - 1 : this.at.length
    const sample = sampleOf(scopeStatus(context, at))
    this.at[index] = at
    for (const column of columns) this.values[column][index] = sample[column]
  }

  /** Number of samples up to a time. */
  countUntil(at: number): number {
    let low = 0
    let high = this.at.length
    while (low < high) {
      const middle = (low + high) >> 1
      if ((this.at[middle] as number) <= at) low = middle + 1
      else high = middle
    }
    return low
  }
}
