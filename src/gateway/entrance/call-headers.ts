/** What a request says of its call, in headers. */
import type { IncomingHttpHeaders } from 'node:http'
import { type Lane, lanes, maxTokens, type PriorityClass } from '../../../machines/index.ts'
import { parsePriority, priorityHeader } from '../../carrier/priority.ts'
import type { CallRequest } from '../../host/request.ts'
import { ownPrefix } from '../passage/forward-headers.ts'
import { echo, type FieldProblem } from '../problem/field-problem.ts'

export interface CallHeaders {
  /** Null when the client has none. */
  readonly id: string | null
  /** Null when untagged, or tagged with a class that is not known. */
  readonly priorityClass: PriorityClass | null
  /** A class was stated and is not one of ours: the call counts as untagged. */
  readonly unknownPriority: boolean
  readonly principal: string | null
  readonly lane: Lane | null
  readonly turnId: string | null
  /** The client's own count; it wins over an estimate. */
  readonly inputTokens: number | null
  /** From receipt, milliseconds. */
  readonly deadlineMs: number | null
  /** How often the client's SDK has already sent this request by itself. */
  readonly sdkRetries: number
}

/** Tells field problems from the value that was read without any. */
export const isProblems = <A>(value: A | ReadonlyArray<FieldProblem>): value is ReadonlyArray<FieldProblem> =>
  Array.isArray(value)

/** Longest id: the gateway may have to add the number of a client's retry to it. */
const maxIdLength = 240
const maxNameLength = 256
const maxDeadlineMs = 30 * 24 * 60 * 60_000

const known: ReadonlySet<string> = new Set([
  'x-rightofway-principal',
  'x-rightofway-lane',
  'x-rightofway-turn',
  'x-rightofway-input-tokens',
  'x-rightofway-deadline-ms',
  // Whether the client may ask at all is looked at before.
  'x-rightofway-token',
])

const shown = (value: string): string => JSON.stringify(echo(value))

/** Reads one field after the other and gathers what is wrong. */
class Reader {
  readonly problems: Array<FieldProblem> = []
  readonly #headers: IncomingHttpHeaders

  constructor(headers: IncomingHttpHeaders) {
    this.#headers = headers
  }

  raw(field: string): string | null {
    const value = this.#headers[field]
    return value === undefined ? null : Array.isArray(value) ? value.join(', ') : value.trim()
  }

  text(field: string, maxLength: number): string | null {
    const value = this.raw(field)
    if (value === null) return null
    if (value.length >= 1 && value.length <= maxLength && /^[\x20-\x7e]+$/.test(value)) return value
    return this.#refuse(field, `1 to ${maxLength} printable ASCII characters`, value)
  }

  integer(field: string, least: number, most: number): number | null {
    const value = this.raw(field)
    if (value === null) return null
    const number = /^\d{1,15}$/.test(value) ? Number(value) : Number.NaN
    if (number >= least && number <= most) return number
    return this.#refuse(field, `an integer in [${least}, ${most}]`, value)
  }

  oneOf<A extends string>(field: string, allowed: ReadonlyArray<A>): A | null {
    const value = this.raw(field)
    if (value === null) return null
    const found = allowed.find((name) => name === value.toLowerCase())
    return found ?? this.#refuse(field, `one of ${allowed.join(', ')}`, value)
  }

  /** A misspelt field would else change nothing and say nothing. */
  refuseUnknown(): void {
    for (const field in this.#headers) {
      if (!field.startsWith(ownPrefix) || known.has(field)) continue
      this.#refuse(field, `one of the fields ${[...known].join(', ')}`, this.raw(field) ?? '')
    }
  }

  #refuse(field: string, expected: string, got: string): null {
    this.problems.push({ field, expected, got: shown(got) })
    return null
  }
}

/** Answers what is wrong, if anything is. */
export const readCallHeaders = (headers: IncomingHttpHeaders): CallHeaders | ReadonlyArray<FieldProblem> => {
  const reader = new Reader(headers)
  const { priorityClass, unknown: unknownPriority } = parsePriority(reader.raw(priorityHeader))
  const retries = Number(reader.raw('x-stainless-retry-count') ?? 0)
  reader.refuseUnknown()
  const read = {
    id: reader.text('idempotency-key', maxIdLength),
    priorityClass,
    unknownPriority,
    principal: reader.text('x-rightofway-principal', maxNameLength),
    lane: reader.oneOf('x-rightofway-lane', lanes),
    turnId: reader.text('x-rightofway-turn', maxNameLength),
    inputTokens: reader.integer('x-rightofway-input-tokens', 0, maxTokens),
    deadlineMs: reader.integer('x-rightofway-deadline-ms', 1, maxDeadlineMs),
    sdkRetries: Number.isInteger(retries) && retries > 0 ? retries : 0,
  }
  return reader.problems.length > 0 ? reader.problems : read
}

/** The call that the headers describe, received at `nowMs`. A field without a header is left out. */
export const requestOfHeaders = (
  { id, priorityClass, principal, lane, turnId, inputTokens, deadlineMs }: CallHeaders,
  nowMs: number,
): CallRequest => ({
  ...(id === null ? {} : { id }),
  ...(priorityClass === null ? {} : { priorityClass }),
  ...(principal === null ? {} : { principal }),
  ...(lane === null ? {} : { lane }),
  ...(turnId === null ? {} : { turnId }),
  ...(inputTokens === null ? {} : { inputTokens }),
  ...(deadlineMs === null ? {} : { deadlineAt: nowMs + deadlineMs }),
})

export const unknownPriorityWarning = 'x-resource-priority names no known class; the call counts as untagged'
