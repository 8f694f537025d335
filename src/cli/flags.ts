/** Flags that several verbs take. */
import { Flag } from 'effect/cli'

export const journalFlag = Flag.String('journal').pipe(
  Flag.withDescription('Path of the journal (default .rightofway/lanes.db, or what --config says)'),
  Flag.optional,
)

export const jsonFlag = Flag.Boolean('json').pipe(
  Flag.withDescription('Print JSON, one value a line'),
  Flag.withDefault(false),
)
