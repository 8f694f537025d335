/** Every call as a bar: its phases with their times, and its row. */

import { HashMap } from 'effect'
import type { Call, Decision, Lane, Outcome, Reason, ScopeContext } from '../../../../machines/index.ts'
import type { EntryFrame } from '../../../protocol.ts'

export type Phase = 'waiting' | 'admitted' | 'streaming'

export interface Span {
  readonly phase: Phase
  /** Why the call waits, or why it was granted. */
  reason: Reason | null
  /** Epoch milliseconds. */
  readonly from: number
  /** Null while it lasts. */
  to: number | null
}

export type CallEnd = Outcome | 'withdrawn' | 'rejected' | 'expired'

export interface CallBar {
  readonly call: Call
  /** Row within its lane, from 0. */
  readonly row: number
  readonly submittedAt: number
  readonly spans: Span[]
  endedAt: number | null
  end: CallEnd | null
  /** Number of grants. */
  grants: number
}

/** Free row numbers, smallest first, so that few rows are used. */
class FreeRows {
  readonly #heap: number[] = []
  #next = 0

  take(): number {
    const heap = this.#heap
    const [least] = heap
    if (least === undefined) return this.#next++
    const last = heap.pop() as number
    if (heap.length > 0) this.#sink(last)
    return least
  }

  give(row: number): void {
    const heap = this.#heap
    let index = heap.push(row) - 1
    while (index > 0) {
      const parent = (index - 1) >> 1
      if ((heap[parent] as number) <= row) break
      heap[index] = heap[parent] as number
      index = parent
    }
    heap[index] = row
  }

  get used(): number {
    return this.#next
  }

  #sink(row: number): void {
    const heap = this.#heap
    let index = 0
    for (;;) {
      let child = 2 * index + 1
      if (child >= heap.length) break
      if (child + 1 < heap.length && (heap[child + 1] as number) < (heap[child] as number)) child += 1
      if ((heap[child] as number) >= row) break
      heap[index] = heap[child] as number
      index = child
    }
    heap[index] = row
  }
}

const endOfVerdict: Readonly<Partial<Record<Decision['verdict'], CallEnd>>> = {
  reject: 'rejected',
  expire: 'expired',
}

/** Builds bars from entries, in order. */
export class CallBook {
  readonly #bars = new Map<string, CallBar>()
  readonly #rows: Readonly<Record<Lane, FreeRows>> = { primary: new FreeRows(), auxiliary: new FreeRows() }
  /** In order of submission. */
  readonly bars: CallBar[] = []
  #ended: CallBar[] = []

  /** Begins with the live calls of `context`. */
  constructor(context: ScopeContext | null = null) {
    if (context === null) return
    const alive = [...HashMap.values(context.waiting), ...HashMap.values(context.inFlight)]
    for (const one of alive.sort((a, b) => a.seq - b.seq)) {
      const bar = this.#open(one.call, one.submittedAt)
      if (!('stage' in one)) this.#begin(bar, 'waiting', one.submittedAt, one.reason)
      else {
        bar.grants = one.attempts
        if (one.grantedAt > one.submittedAt) this.#begin(bar, 'waiting', one.submittedAt, null)
        this.#begin(bar, one.stage === 'accepted' ? 'streaming' : 'admitted', one.grantedAt, one.grant)
      }
    }
  }

  get(callId: string): CallBar | undefined {
    return this.#bars.get(callId)
  }

  rows(lane: Lane): number {
    return this.#rows[lane].used
  }

  add({ event, decisions }: EntryFrame): void {
    switch (event.type) {
      case 'call.submitted': {
        const known = this.#bars.get(event.call.id)
        // A recovered call whose owner asks for it again is still the same call.
        if (known === undefined || known.end !== null) {
          this.#begin(this.#open(event.call, event.at), 'waiting', event.at, null)
        }
        break
      }
      case 'call.accepted':
        this.#withOpen(event.callId, (bar) => {
          const last = bar.spans.at(-1)
          if (last?.phase === 'admitted') this.#begin(bar, 'streaming', event.at, last.reason)
        })
        break
      case 'call.settled':
        this.#withOpen(event.callId, (bar) => this.#end(bar, event.at, event.outcome))
        break
      case 'call.withdrawn':
        this.#withOpen(event.callId, (bar) => this.#end(bar, event.at, 'withdrawn'))
        break
    }
    for (const decision of decisions) this.#decide(decision)
    // A call that ends and comes back within one event keeps its row. A row is freed only when its call did
    // not come back.
    for (const bar of this.#ended) if (bar.end !== null) this.#rows[bar.call.lane].give(bar.row)
    this.#ended = []
  }

  #decide({ callId, verdict, reason, at }: Decision): void {
    const bar = this.#bars.get(callId)
    if (bar === undefined) return
    switch (verdict) {
      case 'admit':
      case 'release':
        this.#reopen(bar)
        bar.grants += 1
        return this.#begin(bar, 'admitted', at, reason)
      case 'defer': {
        this.#reopen(bar)
        const last = bar.spans.at(-1)
        if (last?.phase === 'waiting' && last.to === null) last.reason = reason
        else this.#begin(bar, 'waiting', at, reason)
        return
      }
      case 'cancel':
        return
      default:
        // The event answers a second submission of an id whose call has ended.
        if (bar.end === null || this.#ended.includes(bar))
          this.#end(bar, at, endOfVerdict[verdict] as CallEnd)
    }
  }

  #open(call: Call, at: number): CallBar {
    const row = this.#rows[call.lane].take()
    const bar: CallBar = { call, row, submittedAt: at, spans: [], endedAt: null, end: null, grants: 0 }
    this.#bars.set(call.id, bar)
    this.bars.push(bar)
    return bar
  }

  #withOpen(callId: string, change: (bar: CallBar) => void): void {
    const bar = this.#bars.get(callId)
    if (bar !== undefined && bar.end === null) change(bar)
  }

  #begin(bar: CallBar, phase: Phase, at: number, reason: Reason | null): void {
    const last = bar.spans.at(-1)
    if (last !== undefined && last.to === null) {
      last.to = at
      // The event that submitted the call also granted it: the call never waited.
      if (last.from === at && last.phase === 'waiting') bar.spans.pop()
    }
    bar.spans.push({ phase, reason, from: at, to: null })
  }

  #end(bar: CallBar, at: number, end: CallEnd): void {
    const last = bar.spans.at(-1)
    if (last !== undefined && last.to === null) last.to = at
    if (bar.end === null) this.#ended.push(bar)
    bar.endedAt = at
    bar.end = end
  }

  #reopen(bar: CallBar): void {
    bar.endedAt = null
    bar.end = null
  }
}

/** The bar's span at a moment; null when the bar had not begun or had ended. */
export const spanAt = ({ spans }: CallBar, at: number): Span | null =>
  spans.findLast((span) => span.from <= at && (span.to === null || span.to > at)) ?? null

/** Milliseconds spent in a phase until `at`. */
export const spentMs = ({ spans }: CallBar, phase: Phase, at: number): number =>
  spans
    .filter((span) => span.phase === phase && span.from < at)
    .reduce((sum, span) => sum + Math.min(span.to ?? at, at) - span.from, 0)
