/** What a request asks for, as a call that can be admitted. */

import type { IncomingMessage, ServerResponse } from 'node:http'
import { type PriorityClass, priorityRanks } from '../../../machines/index.ts'
import { noAmbient } from '../../carrier/ambient.ts'
import type { LaneHost } from '../../host/host.ts'
import { kernelOf } from '../../host/internal.ts'
import { callOf } from '../../host/request.ts'
import type { ScopeRunner } from '../../host/scope-runner.ts'
import type { AskedCall } from '../calls/asked-call.ts'
import { withUsageAsked } from '../calls/asked-usage.ts'
import { withPriorityMember } from '../calls/body-priority.ts'
import { asksForEvents } from '../calls/event-calls.ts'
import { pathAndQuery, type Route } from '../config/upstreams.ts'
import { weigh } from '../identity/body-weight.ts'
import type { TokenEstimator } from '../identity/estimator.ts'
import { maxOutputIn } from '../identity/max-output.ts'
import type { ScopeFinder } from '../identity/scopes.ts'
import { ArrivingBody } from '../passage/arriving-body.ts'
import type { HeldBody } from '../passage/body.ts'
import { requestFields } from '../passage/forward-headers.ts'
import type { FieldProblem } from '../problem/field-problem.ts'
import { type FoundRow, modelAsked } from '../routing/route-table.ts'
import type { Routing } from '../routing/routing.ts'
import { Subject } from '../routing/subject.ts'
import { isProblems, readCallHeaders, requestOfHeaders, unknownPriorityWarning } from './call-headers.ts'
import { withClassified, within } from './rights.ts'
import type { Token } from './tokens.ts'

export interface AskingPorts {
  readonly host: LaneHost
  readonly scopes: ScopeFinder
  readonly estimator: TokenEstimator
  readonly routing: Routing
  readonly secret: string
}

/** A request that may come in, and where it goes. */
export interface Arrival {
  readonly route: Route
  /** The row of the route table. */
  readonly found: FoundRow
  readonly request: IncomingMessage
  readonly response: ServerResponse
  /** Whose request it is; null where nobody needs a token. */
  readonly holder: Token | null
}

/** What of an arrival says what it asks for. */
export interface AskingRequest extends Pick<Arrival, 'route' | 'found' | 'holder'> {
  readonly request: Pick<IncomingMessage, 'headers' | 'rawHeaders'>
}

/** A body as it came, and what is known of it, without its encoding. */
export interface AskedBody {
  readonly held: HeldBody | ArrivingBody
  readonly plain: Buffer
}

/**
 * The call that a request asks for; what is wrong with it; or that no scope can be had for it. `session` is the model of a
 * socket's message, which its session may have named.
 */
export const askedCall = (
  { scopes, estimator, host, routing, secret }: AskingPorts,
  { route, found, request, holder }: AskingRequest,
  { held, plain }: AskedBody,
  session: string | null = null,
): AskedCall | ReadonlyArray<FieldProblem> | 'too-many' => {
  const { upstream, origin, query } = route
  const stated = readCallHeaders(request.headers)
  if (isProblems(stated)) return stated
  const contentType = request.headers['content-type'] ?? ''
  const named = modelAsked({ found, query, contentType, body: plain })
  const model = session ?? named.model
  const subject = new Subject(
    { upstream, path: route.path, query, headers: request.headers, model, body: plain },
    secret,
  )
  const classified = routing.classifier.classify(subject)
  const said = holder === null ? withClassified(stated, classified) : within(stated, holder, classified)
  if (isProblems(said)) return said
  const runner = scopes.find(routing.namer.identify(subject))
  if (runner === 'too-many' || isProblems(runner)) return runner
  const upload = held instanceof ArrivingBody ? held : null
  const totalBytes = upload?.totalBytes ?? plain.byteLength
  const weight = weigh({
    body: plain,
    totalBytes,
    wire: upstream.wire,
    rule: found.row.estimate,
    contentType,
  })
  const estimatedTokens = estimator.estimate(weight, runner.name)
  const maxOutputTokens = maxOutputIn(plain)
  const { clock } = kernelOf(host)
  const asks = {
    inputTokens: estimatedTokens,
    ...(maxOutputTokens === null ? {} : { maxOutputTokens }),
    ...requestOfHeaders(said, clock.now()),
  }
  const described = callOf(asks, runner.name, noAmbient)
  const outputTokens =
    found.row.estimate === 'input'
      ? 0
      : expectedOutput(estimator, runner, described.priorityClass, maxOutputTokens)
  const call = { ...described, outputTokens }
  const body = held instanceof ArrivingBody ? plain : held.buffer
  // Told only where it is honoured, only what the client said, and only in a body that can be changed.
  const isRanked =
    upload === null &&
    body === plain &&
    upstream.honoursPriority &&
    upstream.wire === 'openai' &&
    said.priorityClass !== null
  const sent = isRanked ? withPriorityMember(body, priorityRanks[call.priorityClass]) : body
  const asksForUsage =
    upload === null && body === plain && upstream.asksForUsage === true && upstream.wire === 'openai'
  const asking = asksForUsage ? withUsageAsked(route.path, sent) : sent
  const headers = requestFields(request.rawHeaders, {
    honoursPriority: upstream.honoursPriority,
    keepLength: upload !== null,
  })
  return {
    call,
    runner,
    upstream,
    outbound: {
      method: 'POST',
      origin,
      path: pathAndQuery(route),
      headers,
      body: upload === null ? asking : null,
      headTimeoutMs: 0,
    },
    // The emulator's log judges by it whether a call was dispatched twice.
    idField: upstream.name.startsWith('emulator/') ? 'x-emulator-call-id' : null,
    held,
    upload,
    bodyBytes: totalBytes,
    weight,
    estimatedTokens,
    statedId: said.id,
    sdkRetries: said.sdkRetries,
    asksForEvents: asksForEvents({ wire: upstream.wire, path: route.path, query }, plain),
    hidesUsage: asking !== sent,
    warning: said.unknownPriority ? unknownPriorityWarning : null,
  }
}

/** Never more than a minute's limit: a guess must not stop a call for good. */
const expectedOutput = (
  estimator: TokenEstimator,
  { name, context }: ScopeRunner,
  priorityClass: PriorityClass,
  maxOutputTokens: number | null,
): number => {
  const expected = estimator.estimateOutput({ scope: name, priorityClass, maxOutputTokens })
  return Math.min(expected, context.policy.limits?.outputTokensPerMinute ?? expected)
}
