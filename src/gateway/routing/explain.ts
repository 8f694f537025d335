/** Says of one request which row of each table fits it, and why: by the same look-ups that the gateway makes. */
import type { IncomingHttpHeaders } from 'node:http'
import { InvalidInput, laneOfClass, untaggedClass } from '../../../machines/index.ts'
import { scopeName } from '../../host/scope-name.ts'
import type { GatewayConfig } from '../config/config.ts'
import { emulatorUpstreams, makeRouter } from '../config/upstreams.ts'
import { isProblems, readCallHeaders } from '../entrance/call-headers.ts'
import { withClassified } from '../entrance/rights.ts'
import { targetOf } from '../entrance/target.ts'
import { modelAsked } from './route-table.ts'
import { makeRouting } from './routing.ts'
import type { ScopeIdentity } from './scope-names.ts'
import { Subject } from './subject.ts'

export interface ExplainedRequest {
  readonly upstream: string
  readonly route: { readonly kind: string; readonly path: string; readonly wire: string }
  /** Null for what is no call: nothing below counts then. */
  readonly call: ExplainedCall | null
}

export interface ExplainedCall {
  readonly model: string
  /** The place of the model; null where the request names none. */
  readonly modelFrom: string | null
  readonly priorityClass: string
  readonly lane: string
  readonly principal: string
  readonly turnId: string | null
  /** The row of `classify` that fits; null where none does. */
  readonly classifiedBy: string | null
  /** The condition of that row. */
  readonly because: string | null
  /** The rows before it, each with its first condition that does not hold. */
  readonly passed: ReadonlyArray<{ readonly row: string; readonly unmet: string }>
  readonly scope: string
  /** The row of `scopes` that stated each part of the name; null where none did. */
  readonly scopeRows: ScopeIdentity['rows']
}

/** A request as it is written in a file: request line, headers, an empty line, body. */
export interface WrittenRequest {
  readonly method: string
  readonly target: string
  readonly headers: IncomingHttpHeaders
  readonly body: Buffer
}

const wrong = (field: string, expected: string, got: string): InvalidInput =>
  new InvalidInput([{ field, expected, got: JSON.stringify(got.slice(0, 80)) }])

/** Throws `InvalidInput` that names the faulty line. */
export const readRequest = (bytes: Buffer): WrittenRequest => {
  const text = bytes.toString('latin1')
  const gap = /\r?\n\r?\n/.exec(text)
  const head = gap === null ? text.trimEnd() : text.slice(0, gap.index)
  const [first = '', ...lines] = head.split(/\r?\n/)
  const [, method, target] = /^([A-Z]+) (\S+)(?: HTTP\/1\.[01])?$/.exec(first.trimEnd()) ?? []
  if (method === undefined || target === undefined)
    throw wrong('request line', 'such as POST /anthropic/v1/messages HTTP/1.1', first)
  const headers: Record<string, string> = {}
  for (const line of lines) {
    const [, name, value] = /^([\w!#$%&'*+.^`|~-]+):[ \t]*(.*?)[ \t]*$/.exec(line) ?? []
    if (name === undefined || value === undefined)
      throw wrong('header', 'a line such as x-api-key: key', line)
    headers[name.toLowerCase()] = value
  }
  const body = gap === null ? Buffer.alloc(0) : bytes.subarray(gap.index + gap[0].length)
  return { method, target, headers, body }
}

/** Throws `InvalidInput` for a request that the gateway would refuse. `secret` keys the fingerprints. */
export const explainRequest = (
  config: GatewayConfig,
  { method, target, headers, body }: WrittenRequest,
  secret: string,
): ExplainedRequest => {
  const router = makeRouter([...config.upstreams, ...emulatorUpstreams('http://127.0.0.1')])
  const parsed = targetOf(target)
  const route = parsed === null ? null : router.route(parsed)
  if (route === null) throw wrong('path', `one of ${router.routes.join(', ')}`, target)
  const { upstream, path, query } = route
  const { routes, classifier, namer } = makeRouting(config)
  const found = routes.rowOf(path)
  const isCall = method === 'POST' && found.row.kind === 'generating'
  const shown = { kind: isCall ? 'generating' : found.row.kind, path: found.row.path, wire: found.row.wire }
  if (method !== 'POST') {
    const route = { kind: 'bookkeeping', path: `${method} of any path`, wire: upstream.wire }
    return { upstream: upstream.name, route, call: null }
  }
  if (!isCall) return { upstream: upstream.name, route: shown, call: null }
  const stated = readCallHeaders(headers)
  if (isProblems(stated)) throw new InvalidInput(stated)
  const contentType = headers['content-type'] ?? ''
  const { model, from } = modelAsked({ found, query, contentType, body })
  const subject = new Subject({ upstream, path, query, headers, model, body }, secret)
  const classified = classifier.classify(subject)
  const said = withClassified(stated, classified)
  const identity = namer.identify(subject)
  const at = classifier.rows.findIndex(({ condition }) => condition.fits(subject))
  const passed = classifier.rows.slice(0, at < 0 ? undefined : at)
  const priorityClass =
    said.priorityClass ?? (said.lane === 'auxiliary' ? 'background_ingestion' : untaggedClass)
  const call = {
    model,
    modelFrom: from,
    priorityClass,
    lane: said.lane ?? laneOfClass(priorityClass),
    principal: said.principal ?? 'default',
    turnId: said.turnId,
    classifiedBy: classified?.row ?? null,
    because: at < 0 ? null : (classifier.rows[at]?.condition.text ?? null),
    passed: passed.map(({ name, condition }) => ({ row: name, unmet: condition.unmet(subject) ?? '' })),
    scope: scopeName(identity),
    scopeRows: identity.rows,
  }
  return { upstream: upstream.name, route: shown, call }
}
