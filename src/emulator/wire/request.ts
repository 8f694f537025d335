import type { IncomingHttpHeaders } from 'node:http'
import type { InvalidField, WireRequest } from './dialect.ts'

/** The faults that a test can ask of one call. */
export const faults = ['in-stream-error', 'disconnect', 'overloaded', 'spend-cap', 'hang'] as const
export type Fault = (typeof faults)[number]

/** The emulator's own request headers. */
export interface Instructions {
  readonly inputTokens: number
  /** Null when the request does not say. */
  readonly outputTokens: number | null
  readonly fault: Fault | null
  /** Null when the caller has no id of its own. */
  readonly callId: string | null
  readonly lane: string | null
}

/** Length of an answer when the request states none, tokens. */
export const defaultOutputTokens = 64

/** Reads `x-emulator-*`. Input tokens are a quarter of the body's bytes unless stated. */
export const readInstructions = (
  headers: IncomingHttpHeaders,
  bodyBytes: number,
): Instructions | InvalidField => {
  const inputTokens = countOf(headers, 'x-emulator-input-tokens')
  if (typeof inputTokens === 'object' && inputTokens !== null) return inputTokens
  const outputTokens = countOf(headers, 'x-emulator-output-tokens')
  if (typeof outputTokens === 'object' && outputTokens !== null) return outputTokens
  const named = headers['x-emulator-fault']
  const fault = faults.find((known) => known === named) ?? null
  if (named !== undefined && fault === null) {
    return { field: 'x-emulator-fault', message: `must be one of ${faults.join(', ')}, got ${String(named)}` }
  }
  return {
    inputTokens: inputTokens ?? Math.ceil(bodyBytes / 4),
    outputTokens,
    fault,
    callId: nameOf(headers['x-emulator-call-id']) ?? nameOf(headers['idempotency-key']),
    lane: nameOf(headers['x-emulator-lane']) ?? nameOf(headers['x-resource-priority']),
  }
}

/** The length of the answer, and whether the caller's limit ended it. */
export const lengthOf = (
  instructions: Instructions,
  request: WireRequest,
): { readonly outputTokens: number; readonly truncated: boolean } => {
  if (instructions.outputTokens !== null) {
    return { outputTokens: instructions.outputTokens, truncated: false }
  }
  const allowed = request.maxOutputTokens ?? defaultOutputTokens
  return { outputTokens: Math.min(allowed, defaultOutputTokens), truncated: allowed < defaultOutputTokens }
}

const countOf = (headers: IncomingHttpHeaders, field: string): number | null | InvalidField => {
  const value = headers[field]
  if (value === undefined) return null
  const count = typeof value === 'string' && /^\d{1,9}$/.test(value) ? Number(value) : null
  return count ?? { field, message: `must be a whole number in [0, 999999999], got ${String(value)}` }
}

/** Names go to the log: they are kept short, so that they cannot carry a prompt. */
const nameOf = (value: string | readonly string[] | undefined): string | null =>
  typeof value === 'string' && /^[\w.:@/-]{1,128}$/.test(value) ? value : null
