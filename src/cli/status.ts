/** `rightofway status`: lanes, permits and waits of a running or a dead host, from its journal. */
import { Console, Effect } from 'effect'
import { Command } from 'effect/cli'
import type { JournalStatus } from '../host/journal-status.ts'
import type { LaneStatus, ScopeStatus } from '../host/status.ts'
import { attempt } from './failure.ts'
import { journalFlags, journalPath, jsonFlag } from './flags.ts'

export const statusVerb = Command.make(
  'status',
  { ...journalFlags, json: jsonFlag },
  Effect.fn(function* ({ journal, config, json }) {
    const { journalStatus } = yield* attempt(() => import('../host/journal-status.ts'))
    const { seconds } = yield* attempt(() => import('../host/explain-words.ts'))
    const path = yield* journalPath(journal, config)
    const status = yield* attempt(() => journalStatus(path))
    yield* Console.log(json ? jsonLines(status) : textOf(path, status, seconds))
  }),
).pipe(
  Command.withDescription('Show lanes, permits and waits of a host in another process, from its journal'),
)

const jsonLines = ({ isLive, scopes }: JournalStatus): string =>
  scopes.map((scope) => JSON.stringify({ isLive, ...scope })).join('\n')

const policyText = (policy: ScopeStatus['policy']): string => {
  const values = Object.entries(policy).map(([field, value]) => `${field} ${JSON.stringify(value)}`)
  return values.length === 0 ? 'the default' : `the default, but ${values.join(', ')}`
}

const textOf = (path: string, { isLive, scopes }: JournalStatus, seconds: (ms: number) => string): string => {
  const lane = (name: string, { waiting, inFlight, longestWaitMs, longestActiveMs }: LaneStatus): string =>
    `  ${name.padEnd(9)}  ${waiting} waiting${longestWaitMs === null ? '' : ` (oldest ${seconds(longestWaitMs)})`}, ` +
    `${inFlight} permits held${longestActiveMs === null ? '' : ` (oldest ${seconds(longestActiveMs)})`}`
  return [
    `${path}: ${isLive ? 'written by a live host' : 'no host writes it; as it was left'}, scopes: ${scopes.length}`,
    ...scopes.flatMap(
      ({ scope, state, auxiliaryGate, placesTaken, capacity, primary, auxiliary, policy }) => [
        `${scope}: ${state}, gate ${auxiliaryGate}, ${placesTaken} of ${capacity} places taken`,
        lane('primary', primary),
        lane('auxiliary', auxiliary),
        `  policy     ${policyText(policy)}`,
      ],
    ),
  ].join('\n')
}
