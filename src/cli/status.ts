/** `rightofway status`: lanes, permits and waits of a running or a dead host, from its journal. */
import { Console, Effect, Option } from 'effect'
import { Command } from 'effect/cli'
import type { ShownPolicy } from '../gateway/config/policies.ts'
import type { JournalStatus } from '../host/journal-status.ts'
import type { LaneStatus, ScopeStatus } from '../host/status.ts'
import { attempt } from './failure.ts'
import { journalFlags, journalPath, jsonFlag } from './flags.ts'

export const statusVerb = Command.make(
  'status',
  { ...journalFlags, json: jsonFlag },
  Effect.fn(function* ({ journal, config, json }) {
    const { journalStatus } = yield* attempt(() => import('../host/journal-status.ts'))
    const { duration } = yield* attempt(() => import('../host/explain-words.ts'))
    const path = yield* journalPath(journal, config)
    const status = yield* attempt(() => journalStatus(path))
    // Only the configuration can tell where a value comes from.
    const { sourcesBy } = yield* attempt(() => import('./printing.ts'))
    const shown = Option.isNone(config) ? null : yield* attempt(() => sourcesBy(config.value))
    yield* Console.log(json ? jsonLines(status, shown) : textOf(path, status, duration, shown))
  }),
).pipe(
  Command.withDescription('Show lanes, permits and waits of a host in another process, from its journal'),
)

/** The policy of a scope in force, with the source of each value; null where no configuration is named. */
type Sources = ((scope: ScopeStatus) => ShownPolicy) | null

const jsonLines = ({ isLive, scopes }: JournalStatus, shown: Sources): string =>
  scopes
    .map((scope) => JSON.stringify({ isLive, ...scope, ...(shown === null ? {} : { policy: shown(scope) }) }))
    .join('\n')

const sourcedText = ({ preset, values }: ShownPolicy): string => {
  const stated = Object.entries(values).map(
    ([field, { value, from }]) => `${field} ${JSON.stringify(value)} (${from})`,
  )
  return [`preset ${preset}`, ...stated].join(', ')
}

const policyText = (policy: ScopeStatus['policy']): string => {
  const values = Object.entries(policy).map(([field, value]) => `${field} ${JSON.stringify(value)}`)
  return values.length === 0 ? 'the default' : `the default, but ${values.join(', ')}`
}

const sizeText = ({ bytes, walBytes, entries, oldestAt }: JournalStatus['journal']): string => {
  const mebibytes = (size: number): string => `${(size / 1024 / 1024).toFixed(1)} MiB`
  const since = oldestAt === null ? '' : `, the oldest of ${new Date(oldestAt).toISOString()}`
  return `${mebibytes(bytes)} and ${mebibytes(walBytes)} of write-ahead log, ${entries} entries${since}`
}

const textOf = (
  path: string,
  { isLive, journal, scopes }: JournalStatus,
  duration: (ms: number) => string,
  shown: Sources,
): string => {
  const lane = (name: string, { waiting, inFlight, longestWaitMs, longestActiveMs }: LaneStatus): string =>
    `  ${name.padEnd(9)}  ${waiting} waiting${longestWaitMs === null ? '' : ` (oldest ${duration(longestWaitMs)})`}, ` +
    `${inFlight} permits held${longestActiveMs === null ? '' : ` (oldest ${duration(longestActiveMs)})`}`
  return [
    `${path}: ${isLive ? 'written by a live host' : 'no host writes it; as it was left'}, scopes: ${scopes.length}`,
    `  ${sizeText(journal)}`,
    ...scopes.flatMap((status) => {
      const { scope, state, auxiliaryGate, placesTaken, capacity, primary, auxiliary, policy } = status
      return [
        `${scope}: ${state}, gate ${auxiliaryGate}, ${placesTaken} of ${capacity} places taken`,
        lane('primary', primary),
        lane('auxiliary', auxiliary),
        `  policy     ${shown === null ? policyText(policy) : sourcedText(shown(status))}`,
      ]
    }),
  ].join('\n')
}
