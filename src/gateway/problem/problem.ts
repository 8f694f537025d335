/** Refusals of the gateway's own, as problem documents (RFC 9457). What a provider answers is never one of these. */
import type { ServerResponse } from 'node:http'
import { echo, type FieldProblem } from './field-problem.ts'

export interface Problem {
  /** Last part of the type's URN, for example `deadline-exceeded`. */
  readonly name: string
  /** [400, 599]. */
  readonly status: number
  readonly title: string
  readonly detail: string
  /** Seconds after which the same request may do better; null when that is not known or never. */
  readonly retryAfterS: number | null
  /** False tells SDKs not to send the same request again by themselves. */
  readonly retryable: boolean
  /** Further members of the document. */
  readonly members?: Readonly<Record<string, unknown>>
}

const json = 'application/problem+json'

/**
 * The document. `error` repeats the detail where the SDKs of both wires look for a message, under a
 * type that no host takes for a fault of its own request.
 */
export const documentOf = ({ name, status, title, detail, members }: Problem): string =>
  JSON.stringify({
    type: `urn:rightofway:problem:${name}`,
    title,
    status,
    detail,
    ...members,
    error: { type: `rightofway_${name.replaceAll('-', '_')}`, message: detail },
  })

/** Answers with a problem, unless an answer has begun. `own` are further header fields. */
export const sendProblem = (
  response: ServerResponse,
  problem: Problem,
  own: Readonly<Record<string, string>> = {},
): void => {
  if (response.headersSent || response.destroyed) return
  const body = documentOf(problem)
  const { retryAfterS, retryable, status } = problem
  response.writeHead(status, {
    'content-type': json,
    'content-length': Buffer.byteLength(body),
    'cache-control': 'no-store',
    ...(retryAfterS === null ? {} : { 'retry-after': String(retryAfterS) }),
    ...(retryable ? {} : { 'x-should-retry': 'false' }),
    ...own,
  })
  response.end(body)
}

/** Fields that are named, of those that cannot be. */
const mostProblems = 10

export const badRequest = (found: ReadonlyArray<FieldProblem>): Problem => {
  const problems = found
    .slice(0, mostProblems)
    .map(({ field, expected, got }) => ({ field: echo(field), expected, got: echo(got, 120) }))
  return badFields(problems)
}

const badFields = (problems: ReadonlyArray<FieldProblem>): Problem => ({
  name: 'bad-field',
  status: 400,
  title: 'The request says something that cannot be',
  detail: problems.map(({ field, expected, got }) => `${field}: expected ${expected}, got ${got}`).join('; '),
  retryAfterS: null,
  retryable: false,
  members: { problems },
})
