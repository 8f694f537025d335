/** What is wrong with a request, as problem documents. */
import { knownCodings } from '../passage/codings.ts'
import { echo } from './field-problem.ts'
import type { Problem } from './problem.ts'

export const badTarget: Problem = {
  name: 'bad-target',
  status: 400,
  title: 'The target of the request names no path',
  detail: 'the target has to be a path that begins with /, or an absolute http URL, without a fragment',
  retryAfterS: null,
  retryable: false,
}

/** Its answer would repeat the key. */
export const noTrace: Problem = {
  name: 'no-trace',
  status: 405,
  title: 'TRACE is not served',
  detail: 'method: expected any but TRACE, whose answer repeats what was sent, keys and all',
  retryAfterS: null,
  retryable: false,
}

export const unclearLength: Problem = {
  name: 'unclear-length',
  status: 400,
  title: 'The length of the body is not clear',
  detail: 'transfer-encoding: expected none in a request of HTTP/1.0',
  retryAfterS: null,
  retryable: false,
}

export const twoHosts: Problem = {
  name: 'two-hosts',
  status: 400,
  title: 'The request has more than one Host field',
  detail: 'host: expected once, got several; the gateway does not guess which of them counts',
  retryAfterS: null,
  retryable: false,
}

export const notFound = (routes: ReadonlyArray<string>): Problem => ({
  name: 'no-route',
  status: 404,
  title: 'No such route',
  detail: `nothing is served under this path; the routes are ${routes.join(', ')}`,
  retryAfterS: null,
  retryable: false,
  members: { routes },
})

/** The one status at which agents that begin with a WebSocket go on over HTTP at once. */
export const notOverWebSocket: Problem = {
  name: 'no-web-socket',
  status: 426,
  title: 'Upgrade Required',
  detail: 'WebSocket is not carried here; use HTTP on the same path',
  retryAfterS: null,
  retryable: false,
}

/** Its path and its host are part of what was signed. */
export const signedForHost: Problem = {
  name: 'signed-for-another-host',
  status: 400,
  title: 'The request is signed for another host',
  detail:
    'authorization: expected a key, got an AWS signature (SigV4) over this host and path, which the provider would refuse at its own; use a bearer key (AWS_BEARER_TOKEN_BEDROCK), or send it unsigned to an upstream that signs, such as a SigV4 proxy behind the gateway',
  retryAfterS: null,
  retryable: false,
}

export const notOperator: Problem = {
  name: 'not-operator',
  status: 403,
  title: 'Only the operator may do this',
  detail: "x-rightofway-operator does not carry this installation's token; 'rightofway release' sends it",
  retryAfterS: null,
  retryable: false,
}

const mostNames = 20

const knownNames = (known: ReadonlyArray<string>): string => {
  if (known.length === 0) return 'none yet'
  const rest = known.length - mostNames
  return known.slice(0, mostNames).join(', ') + (rest > 0 ? ` and ${rest} more` : '')
}

export const unknownScope = (scope: string, known: ReadonlyArray<string>): Problem => ({
  name: 'no-scope',
  status: 404,
  title: 'No such scope',
  detail: `no scope is named ${JSON.stringify(scope.slice(0, 200))}; there are ${knownNames(known)}`,
  retryAfterS: null,
  retryable: false,
})

export const tooLarge = (limitBytes: number): Problem => ({
  name: 'body-too-large',
  status: 413,
  title: 'The request body is too large',
  detail: `the body is larger than bodyLimitBytes = ${limitBytes}`,
  retryAfterS: null,
  retryable: false,
  members: { limitBytes },
})

/** What a small body unfolds into counts as the body. */
export const unfoldsTooFar = (limitBytes: number): Problem => ({
  ...tooLarge(limitBytes),
  detail: `the body, decoded, is larger than bodyLimitBytes = ${limitBytes}`,
})

export const damagedBody = (encoding: string): Problem => ({
  name: 'damaged-body',
  status: 400,
  title: 'The request body cannot be decoded',
  detail: `body: expected what content-encoding says, ${echo(encoding)}, whole and undamaged; got bytes that do not decode`,
  retryAfterS: null,
  retryable: false,
})

export const unknownCoding = (encoding: string): Problem => ({
  name: 'encoded-body',
  status: 415,
  title: 'The encoding of the request body is not known',
  detail: `content-encoding: expected up to four of ${knownCodings.join(', ')} and identity, got ${echo(encoding)}; the gateway has to see which model is asked`,
  retryAfterS: null,
  retryable: false,
})
