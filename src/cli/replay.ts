/**
 * `rightofway replay <journal>`: any past state of a journal, and the decisions that another policy would
 * have made.
 */
import { Console, Effect, Option } from 'effect'
import { Argument, Command, Flag } from 'effect/cli'
import { attempt } from './failure.ts'
import { jsonFlag } from './flags.ts'

const journalPath = Argument.String('journal').pipe(
  Argument.withDescription('Path of the journal, of a running or a dead host'),
)
const scopeFlag = Flag.String('scope').pipe(Flag.withDescription('Only this scope'), Flag.optional)
const atFlag = Flag.String('at').pipe(
  Flag.withDescription('The state at this time: ISO (2026-08-01T12:00:00Z) or epoch milliseconds'),
  Flag.optional,
)
const policyFlag = Flag.String('policy').pipe(
  Flag.withDescription(
    'A JSON file with policy fields, laid over the policies of then: say what would differ',
  ),
  Flag.optional,
)

export const replayVerb = Command.make(
  'replay',
  { journal: journalPath, scope: scopeFlag, at: atFlag, policy: policyFlag, json: jsonFlag },
  Effect.fn(function* ({ journal, scope, at, policy, json }) {
    const { replay } = yield* attempt(() => import('./replaying.ts'))
    const text = yield* attempt(() =>
      replay({
        journal,
        scope: Option.getOrNull(scope),
        at: Option.getOrNull(at),
        policyPath: Option.getOrNull(policy),
        json,
      }),
    )
    yield* Console.log(text)
  }),
).pipe(
  Command.withDescription(
    'Rebuild a past state from a journal; with --policy, say what would have been decided otherwise. ' +
      'That answer takes callers to ask at the same times, and the provider to answer each attempt as it did and as ' +
      'long after its grant; calls that never ran are taken to run as long as the median of those that did.',
  ),
)
