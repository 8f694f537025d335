/** `rightofway inspect`: the inspector over a recorded journal, also while a host writes it. */
import { Console, Effect } from 'effect'
import { Argument, Command, Flag } from 'effect/cli'
import { attempt } from './failure.ts'
import { jsonFlag } from './flags.ts'

export const inspectVerb = Command.make(
  'inspect',
  {
    journal: Argument.String('journal').pipe(Argument.withDescription('Path of the journal')),
    port: Flag.Int('port').pipe(
      Flag.withDescription('Port on this machine, 0 for a free one'),
      Flag.withDefault(0),
    ),
    json: jsonFlag,
  },
  ({ journal, port, json }) =>
    Effect.scoped(
      Effect.gen(function* () {
        const { inspectJournal } = yield* attempt(() => import('../../inspector/server.ts'))
        const { url } = yield* Effect.acquireRelease(
          attempt(() => inspectJournal(journal, { port })),
          (attached) => Effect.promise(() => attached.close()),
        )
        yield* Console.log(json ? JSON.stringify({ journal, url }) : `inspector over ${journal}: ${url}`)
        return yield* Effect.never
      }),
    ),
).pipe(Command.withDescription('Open the inspector over a recorded journal'))
