/** The filter of decisions, as a person sets it and as a link carries it. */
import type { Lane, Verdict } from '../../../../machines/index.ts'

export const verdicts: ReadonlyArray<Verdict> = ['admit', 'defer', 'release', 'cancel', 'reject', 'expire']
export const lanes: ReadonlyArray<Lane> = ['primary', 'auxiliary']

/** An empty string matches every row. */
export interface LogFilter {
  readonly lane: Lane | ''
  readonly verdict: Verdict | ''
  readonly reason: string
  readonly principal: string
  /** Part of a call's id, principal, reason or state, in any case. */
  readonly text: string
}

export const noFilter: LogFilter = { lane: '', verdict: '', reason: '', principal: '', text: '' }
