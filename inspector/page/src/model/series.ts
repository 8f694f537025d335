/** Numbers over time, one sample per entry, and which state the scope was in from when to when. */
import type { ScopeContext, ScopeEvent } from '../../../../machines/index.ts'
import { trailingTokens } from '../../../../machines/limits/ramp.ts'
import { ceilingOf } from '../../../row.ts'

export interface Band {
  readonly state: ScopeContext['state']
  readonly from: number
  /** Null while it lasts. */
  to: number | null
}

const columns = [
  'recentTokens',
  'acceptedTokens',
  'refusedTokens',
  'limitTokens',
  'primaryWaiting',
  'auxiliaryWaiting',
  'inFlight',
] as const
export type Column = (typeof columns)[number]

export class Series {
  /** Epoch milliseconds, rising. */
  readonly at: number[] = []
  readonly values: Readonly<Record<Column, Array<number | null>>> = {
    recentTokens: [],
    acceptedTokens: [],
    refusedTokens: [],
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
    const { at, counts, state } = context
    const last = this.bands.at(-1)
    if (last?.state !== state) {
      if (last !== undefined) last.to = at
      this.bands.push({ state, from: at, to: null })
    }
    const { refusal } = context.ramp
    if (event?.type === 'call.settled' && event.outcome === 'throttled' && refusal?.atMs === at) {
      this.refusals.push({ at, tokens: refusal.trailingTokens + refusal.tokens })
    }
    const index = this.at.at(-1) === at ? this.at.length - 1 : this.at.length
    const { acceptedTokens, refusedTokens, statedTokens, limitTokens } = ceilingOf(context)
    const sample: Readonly<Record<Column, number | null>> = {
      recentTokens: trailingTokens(context.ramp, at),
      acceptedTokens: acceptedTokens === 0 ? null : acceptedTokens,
      refusedTokens,
      limitTokens: limitTokens ?? statedTokens,
      primaryWaiting: counts.primaryWaiting,
      auxiliaryWaiting: counts.auxiliaryWaiting,
      inFlight: counts.primaryInFlight + counts.auxiliaryInFlight,
    }
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
