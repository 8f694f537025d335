import type { RefusalKind, RuleName } from './rules/rule.ts'

/** The outcome of one dispatch. Never its content. */
export interface LogEntry {
  /** Provider time, ms. */
  readonly at: number
  readonly callId: string
  readonly kind: 'accepted' | 'refused' | 'completed' | 'aborted'
  readonly inputTokens: number
  /** Tokens produced until then; only on `completed` and `aborted`. */
  readonly outputTokens?: number
  readonly lane?: string
  /** Only on `refused`. */
  readonly rule?: RuleName
  /** Only on `refused`. */
  readonly refusalKind?: RefusalKind
}

/** Counts since the start. The log drops old entries; these counts stay. */
export interface Totals {
  readonly accepted: number
  readonly refused: number
  readonly completed: number
  readonly aborted: number
  /** Input tokens of all accepted calls. */
  readonly acceptedInputTokens: number
}

/** A bounded log: the newest `limit` entries, O(1) per entry. */
export interface RequestLog {
  add(entry: LogEntry): void
  /** Oldest first. */
  entries(): readonly LogEntry[]
  totals(): Totals
}

export const makeRequestLog = (limit: number): RequestLog => {
  const ring: LogEntry[] = []
  let oldest = 0
  const totals = { accepted: 0, refused: 0, completed: 0, aborted: 0, acceptedInputTokens: 0 }
  return {
    add: (entry) => {
      totals[entry.kind] += 1
      if (entry.kind === 'accepted') totals.acceptedInputTokens += entry.inputTokens
      if (ring.length < limit) {
        ring.push(entry)
      } else if (limit > 0) {
        ring[oldest] = entry
        oldest = (oldest + 1) % limit
      }
    },
    entries: () => [...ring.slice(oldest), ...ring.slice(0, oldest)],
    totals: () => ({ ...totals }),
  }
}
