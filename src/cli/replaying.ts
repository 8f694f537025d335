/** The work of `replay`, apart from its flags. */
import { readFileSync } from 'node:fs'
import { HashMap } from 'effect'
import type { Decision, PolicyInput, ScopeContext } from '../../machines/index.ts'
import { encodeScope } from '../../machines/snapshot/codec.ts'
import type { InFlight, Waiting } from '../../machines/state/calls.ts'
import { clockTime, duration, waitWords } from '../host/explain-words.ts'
import { replayScopes } from '../host/replay.ts'
import { scopeStatus } from '../host/scope-facts.ts'
import type { LaneStatus } from '../host/status.ts'
import { type OpenTables, openSqliteReader, openTables } from '../journal/reader.ts'
import { type CallStory, whatIf } from '../simulation/what-if.ts'
import { CliFailure, lineOf } from './failure.ts'
import { historiesOf } from './histories.ts'

export interface ReplayRequest {
  readonly journal: string
  /** Null for all. */
  readonly scope: string | null
  /** ISO time or epoch milliseconds, as text; null for the newest state. */
  readonly at: string | null
  readonly policyPath: string | null
  readonly json: boolean
}

/** Returns the text to print. Throws `CliFailure`, and the journal's own errors. */
export const replay = async (request: ReplayRequest): Promise<string> => {
  const untilAt = request.at === null ? null : timeOf(request.at)
  if (request.policyPath === null) return stateText(request, untilAt)
  const policy = policyAt(request.policyPath)
  const tables = openTables(request.journal)
  try {
    return differencesText(tables, request, policy, untilAt)
  } finally {
    tables.db.close()
  }
}

const timeOf = (text: string): number => {
  const at = /^\d+$/.test(text) ? Number(text) : Date.parse(text)
  if (Number.isFinite(at)) return at
  const message = `--at must be an ISO time or epoch milliseconds, got ${JSON.stringify(text)}`
  throw new CliFailure({ message })
}

const policyAt = (path: string): PolicyInput => {
  try {
    return JSON.parse(readFileSync(path, 'utf8'))
  } catch (error) {
    throw new CliFailure({ message: `policy ${path}: ${lineOf(error)}` })
  }
}

const stateText = async (
  { journal, scope, json }: ReplayRequest,
  untilAt: number | null,
): Promise<string> => {
  const reader = await openSqliteReader(journal)
  try {
    const query = { ...(scope === null ? {} : { scope }), ...(untilAt === null ? {} : { untilAt }) }
    const { scopes } = await replayScopes(reader, journal, query)
    if (scopes.length === 0) {
      const what = scope === null ? 'no scope' : `no scope ${JSON.stringify(scope)}`
      const when = untilAt === null ? '' : ` at ${new Date(untilAt).toISOString()}`
      throw new CliFailure({ message: `journal ${journal} knows ${what}${when}` })
    }
    if (json) return scopes.map(({ context }) => JSON.stringify(encodeScope(context))).join('\n')
    // One moment for all scopes: the requested one, or the newest event of any scope.
    const nowMs = untilAt ?? newestMoment(scopes)
    return scopes.map((one) => scopeText(one.context, one.position, nowMs).join('\n')).join('\n\n')
  } finally {
    reader.close()
  }
}

/** The newest event of any scope, epoch milliseconds. There may be more scopes than a function takes arguments. */
export const newestMoment = (scopes: ReadonlyArray<{ readonly context: Pick<ScopeContext, 'at'> }>): number =>
  scopes.reduce((newest, { context }) => Math.max(newest, context.at), 0)

const listed = 12

const scopeText = (context: ScopeContext, position: number, nowMs: number): ReadonlyArray<string> => {
  const { scope, state, auxiliaryGate, primary, auxiliary, capacity, wait, recentInputTokens } = scopeStatus(
    context,
    nowMs,
  )
  return [
    `${scope} at ${new Date(context.at).toISOString()}, entry ${position}`,
    `  state      ${state}, gate ${auxiliaryGate}, capacity ${capacity}`,
    `  primary    ${laneText(primary)}`,
    `  auxiliary  ${laneText(auxiliary)}`,
    `  sent       ${recentInputTokens} input tokens in the last minute`,
    ...(wait === null ? [] : [`  provider   ${waitWords(wait)}`]),
    ...listOf('in flight', bySeq(context.inFlight), flightText),
    ...listOf('waiting', bySeq(context.waiting), waitingText),
  ]
}

const laneText = ({ waiting, inFlight, longestWaitMs }: LaneStatus): string =>
  `${waiting} waiting${longestWaitMs === null ? '' : ` (longest ${duration(longestWaitMs)})`}, ${inFlight} in flight`

const bySeq = <A extends { readonly seq: number }>(calls: HashMap.HashMap<string, A>): ReadonlyArray<A> =>
  [...HashMap.values(calls)].sort((one, other) => one.seq - other.seq)

const listOf = <A>(title: string, calls: ReadonlyArray<A>, text: (call: A) => string): string[] => [
  ...calls.slice(0, listed).map((call) => `  ${title.padEnd(10)} ${text(call)}`),
  ...(calls.length > listed ? [`  ${title.padEnd(10)} and ${calls.length - listed} more`] : []),
]

const flightText = ({ call, stage, grantedAt, grant }: InFlight): string =>
  `${call.id}: ${call.lane} of ${call.principal}, ${stage}, since ${clockTime(grantedAt)} (${grant})`

const waitingText = ({ call, submittedAt, reason }: Waiting): string =>
  `${call.id}: ${call.lane} of ${call.principal}, since ${clockTime(submittedAt)} (${reason})`

const differencesText = (
  tables: OpenTables,
  { scope, json, journal }: ReplayRequest,
  policy: PolicyInput,
  untilAt: number | null,
): string => {
  const lines: string[] = []
  for (const [name, { history, snapshot }] of historiesOf(tables, scope, untilAt)) {
    const stories = whatIf(name, history, policy, snapshot)
    const told = json
      ? stories.map((story) => JSON.stringify({ scope: name, ...story }))
      : storiesText(name, history.length, stories)
    for (const line of told) lines.push(line)
  }
  if (lines.length === 0 && !json) throw new CliFailure({ message: `journal ${journal} knows no such scope` })
  return lines.join('\n')
}

const storiesText = (
  scope: string,
  events: number,
  stories: ReadonlyArray<CallStory>,
): ReadonlyArray<string> => {
  if (stories.length === 0) return [`${scope}: nothing would differ in ${events} events`]
  const heading = `${scope}: ${stories.length} call${stories.length === 1 ? '' : 's'} would have heard something else (- was, + would)`
  return [heading, ...stories.flatMap(storyText)]
}

const storyText = ({ callId, was, would }: CallStory): ReadonlyArray<string> => {
  const [before, now] = [was.map(decisionText), would.map(decisionText)]
  const shared = before.findIndex((line, index) => line !== now[index])
  const from = shared === -1 ? before.length : shared
  return [
    callId,
    ...before.slice(from).map((line) => `  - ${line}`),
    ...now.slice(from).map((line) => `  + ${line}`),
  ]
}

const decisionText = ({ at, verdict, reason, state }: Decision): string =>
  `${clockTime(at)} ${verdict}: ${reason} (in ${state})`
