/**
 * The log of `serve`: a line for each refusal, hold, release and error. Lines hold names, counts and times, never
 * content: no words of a provider or of a client enter them.
 */
import type { Decision, ScopeContext } from '../../machines/index.ts'
import type { Observation } from '../host/scope-record.ts'

/** In rising order of gravity. */
export const logLevels = ['debug', 'info', 'warn', 'error'] as const
export type LogLevel = (typeof logLevels)[number]

export interface LogLine {
  readonly level: LogLevel
  /** The kind of thing that happened. */
  readonly event: string
  readonly fields: Readonly<Record<string, string | number | null>>
}

export interface LogOptions {
  /** Lines below it are left out. */
  readonly level: LogLevel
  /** Lines of JSON instead of text. */
  readonly json: boolean
  readonly write: (line: string) => void
  /** Epoch milliseconds. */
  readonly now: () => number
}

export class ServeLog {
  readonly #options: LogOptions

  constructor(options: LogOptions) {
    this.#options = options
  }

  log({ level, event, fields }: LogLine): void {
    const { level: least, json, write, now } = this.#options
    if (logLevels.indexOf(level) < logLevels.indexOf(least)) return
    const at = new Date(now()).toISOString()
    if (json) return write(JSON.stringify({ at, level, event, ...redacted(fields) }))
    const words = Object.entries(redacted(fields)).map(([name, value]) => `${name}=${textOf(value)}`)
    write([at, level, event, ...words].join(' '))
  }
}

const textOf = (value: string | number | null): string => {
  if (typeof value !== 'string') return String(value)
  return /^[\x21-\x7e]+$/.test(value) && !value.includes('"') ? value : JSON.stringify(value)
}

/** Keys of providers, bearer tokens and passwords in addresses, wherever they turn up. */
const secrets =
  /\b(?:sk|pk|rk|xai|gsk|AIza|ya29|AKIA|ghp|hf)[-_]?[A-Za-z0-9_-]{12,}|\b(?:Bearer|Basic)\s+\S+|(?<=:\/\/)[^/\s:@]+:[^/\s@]+(?=@)/g
const longest = 300

const redacted = (fields: LogLine['fields']): LogLine['fields'] =>
  Object.fromEntries(
    Object.entries(fields).map(([name, value]) => [
      name,
      typeof value === 'string' ? value.replaceAll(secrets, '[redacted]').slice(0, longest) : value,
    ]),
  )

/** The lines of one event of a scope. `wait` is the scope's wait after it, `before` the one before it. */
export const linesOf = (
  { scope, event, decisions }: Observation,
  wait: ScopeContext['wait'],
  before: ScopeContext['wait'],
): ReadonlyArray<LogLine> => {
  const lines: Array<LogLine> = []
  if (event.type === 'call.settled' && event.evidence !== undefined) {
    const { kind, retryAfterMs } = event.evidence
    lines.push({
      level: 'info',
      event: 'refused by the provider',
      fields: { scope, call: event.callId, kind, retryAfterMs },
    })
  } else if (event.type === 'call.settled' && (event.outcome === 'failed' || event.outcome === 'timedOut'))
    lines.push({
      level: 'warn',
      event: 'failed',
      fields: { scope, call: event.callId, outcome: event.outcome, cause: event.cause ?? null },
    })
  if (wait !== null && (before === null || wait.untilMs > before.untilMs)) {
    const until = new Date(wait.untilMs).toISOString()
    lines.push({ level: 'warn', event: 'held', fields: { scope, kind: wait.kind, until } })
  }
  if (event.type === 'wait.released') lines.push({ level: 'info', event: 'hold released', fields: { scope } })
  if (event.type === 'policy.changed')
    lines.push({ level: 'info', event: 'policy changed', fields: { scope } })
  return [...lines, ...decisions.flatMap((decision) => decisionLines(scope, decision))]
}

const decisionLines = (scope: string, { verdict, callId, reason }: Decision): ReadonlyArray<LogLine> => {
  const fields = { scope, call: callId, reason }
  switch (verdict) {
    case 'reject':
      return [{ level: 'info', event: 'refused', fields }]
    case 'expire':
      return [{ level: 'warn', event: 'expired', fields }]
    case 'cancel':
      return [{ level: 'info', event: 'preempted', fields }]
    case 'release':
      return [{ level: 'info', event: 'released', fields }]
    case 'admit':
      return [{ level: 'debug', event: 'admitted', fields }]
    case 'defer':
      return [{ level: 'debug', event: 'deferred', fields }]
  }
}
