/** `rightofway tune <journal>`: the policy that one's own recorded traffic asks for. */
import { Console, Effect, Option } from 'effect'
import { Argument, Command, Flag } from 'effect/cli'
import { attempt } from './failure.ts'
import { jsonFlag } from './flags.ts'

const journalFile = Argument.String('journal').pipe(
  Argument.withDescription('A journal file; it is only read, also while a host writes it'),
)
const scopeFlag = Flag.String('scope').pipe(
  Flag.withDescription('Only this scope (default: every scope with calls)'),
  Flag.optional,
)
const reportFlag = Flag.String('report').pipe(
  Flag.withDescription('Write a page with the tables to this file'),
  Flag.optional,
)

export const tuneVerb = Command.make(
  'tune',
  { journal: journalFile, scope: scopeFlag, json: jsonFlag, report: reportFlag },
  Effect.fn(function* ({ journal, scope, json, report }) {
    const { tuned } = yield* attempt(() => import('./tuning.ts'))
    const request = {
      journal,
      scope: Option.getOrNull(scope),
      reportPath: Option.getOrNull(report),
      json,
    }
    yield* Console.log(yield* attempt(() => tuned(request)))
  }),
).pipe(Command.withDescription('Play policies over recorded traffic, and recommend one'))
