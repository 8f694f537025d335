/** One's own traffic out of a scope's recorded history: what came when, and how the provider answered. */
import { advance, type Call, contextFrom, type ScopeContext } from '../../../machines/index.ts'
import type { Statement } from '../../emulator/index.ts'
import type { Record } from '../../host/read-record.ts'
import type { Stream } from '../arena/scenario.ts'
import type { TraceRow, Traces } from '../arena/trace.ts'

export interface Recording {
  readonly scope: string
  /** From the first call to the last event, ms. */
  readonly durationMs: number
  readonly calls: number
  readonly primaries: number
  readonly refusals: number
  /** One stream for each lane, class and principal, at the recorded times. */
  readonly streams: ReadonlyArray<Stream>
  readonly traces: Traces
  /** Median of the answers, ms. */
  readonly firstTokenMs: number
  readonly perOutputTokenMs: number
  /** What refusals stated, if anything. */
  readonly states: Statement
  /** What the scope knew in the end: its belief about the limits is played. */
  readonly context: ScopeContext
}

interface Attempt {
  readonly call: Call
  readonly submittedAt: number
  grantedAt: number | null
  acceptedAt: number | null
  inputTokens: number
  outputTokens: number
}

const median = (values: ReadonlyArray<number>, none: number): number => {
  const sorted = values.toSorted((one, other) => one - other)
  return sorted[sorted.length >> 1] ?? none
}

/** Reads a history, from `snapshot` or from the scope's beginning. The calls of the snapshot itself are not played. */
export const recordingOf = (scope: string, history: ReadonlyArray<Record>, snapshot?: unknown): Recording => {
  const attempts = new Map<string, Attempt>()
  const firstTokens: number[] = []
  const perToken: number[] = []
  let context = contextFrom(scope, snapshot)
  let states: Statement = 'none'
  let refusals = 0
  for (const { event, decisions } of history) {
    context = advance(context, event)
    if (event.type === 'call.submitted' && !attempts.has(event.call.id)) {
      const { call, at } = event
      const { inputTokens, outputTokens } = call
      attempts.set(call.id, {
        call,
        submittedAt: at,
        grantedAt: null,
        acceptedAt: null,
        inputTokens,
        outputTokens,
      })
    }
    const attempt = 'callId' in event ? attempts.get(event.callId) : undefined
    if (event.type === 'call.accepted' && attempt !== undefined) {
      attempt.acceptedAt = event.at
      if (attempt.grantedAt !== null) firstTokens.push(event.at - attempt.grantedAt)
    }
    if (event.type === 'call.settled' && attempt !== undefined) {
      const { usage, evidence, outcome } = event
      if (outcome === 'throttled') {
        refusals += 1
        if (evidence !== undefined && evidence.retryAfterMs !== null) states = 'retry-after'
        else if (evidence?.facts.currentLimit !== undefined && states === 'none') states = 'ceiling'
      }
      attempt.inputTokens = usage?.inputTokens ?? attempt.inputTokens
      attempt.outputTokens = usage?.outputTokens ?? attempt.outputTokens
      if (attempt.acceptedAt !== null && attempt.outputTokens > 0)
        perToken.push((event.at - attempt.acceptedAt) / attempt.outputTokens)
    }
    for (const { verdict, callId, at } of decisions) {
      const granted = attempts.get(callId)
      if (granted !== undefined && (verdict === 'admit' || verdict === 'release')) granted.grantedAt = at
    }
  }
  const all = [...attempts.values()]
  const startMs = all[0]?.submittedAt ?? 0
  return {
    scope,
    durationMs: Math.max(1_000, context.at - startMs),
    calls: all.length,
    primaries: all.filter(({ call }) => call.lane === 'primary').length,
    refusals,
    ...streamsOf(all, startMs),
    firstTokenMs: median(firstTokens, 1_000),
    perOutputTokenMs: median(perToken, 20),
    states,
    context,
  }
}

const streamsOf = (
  attempts: ReadonlyArray<Attempt>,
  startMs: number,
): { readonly streams: ReadonlyArray<Stream>; readonly traces: Traces } => {
  const groups = Map.groupBy(attempts, ({ call: { lane, priorityClass, principal } }) =>
    JSON.stringify([lane, priorityClass, principal]),
  )
  const traces = new Map<string, ReadonlyArray<TraceRow>>()
  const streams = [...groups].map(([file, group]): Stream => {
    const { lane, priorityClass, principal } = group[0]!.call
    traces.set(
      file,
      group.map(({ submittedAt, inputTokens, outputTokens }) => ({
        atMs: submittedAt - startMs,
        inputTokens,
        outputTokens,
      })),
    )
    const factors = group
      .filter(({ inputTokens }) => inputTokens > 0)
      .map(({ call, inputTokens }) => call.inputTokens / inputTokens)
    const factor = median(factors, 1)
    return {
      lane,
      priorityClass,
      principal,
      arrival: { kind: 'trace', file },
      inputTokens: null,
      outputTokens: null,
      estimate: Math.abs(factor - 1) < 0.01 ? null : { factor: Math.min(100, factor) },
      deadlineMs: null,
    }
  })
  return { streams, traces }
}
