/** Flags that several verbs take. */
import { Effect, Option } from 'effect'
import { Flag } from 'effect/cli'
import { attempt } from './failure.ts'

export const journalFlag = Flag.String('journal').pipe(
  Flag.withDescription('Path of the journal (default .rightofway/lanes.db, or what --config says)'),
  Flag.optional,
)

export const configFlag = Flag.String('config').pipe(
  Flag.withAlias('c'),
  Flag.withDescription('JSON file with upstreams, policies and the rest; flags win over it'),
  Flag.optional,
)

/** The two flags that say which journal is meant. */
export const journalFlags = { journal: journalFlag, config: configFlag }

/** The journal that is meant. Fails when the config file cannot be read. */
export const journalPath = Effect.fn(function* (
  journal: Option.Option<string>,
  config: Option.Option<string>,
) {
  if (Option.isSome(journal)) return journal.value
  const { readConfig } = yield* attempt(() => import('./configuration.ts'))
  return yield* attempt(() => readConfig({ flags: {}, configPath: Option.getOrNull(config) }).journal)
})

export const jsonFlag = Flag.Boolean('json').pipe(
  Flag.withDescription('Print JSON, one value a line'),
  Flag.withDefault(false),
)
