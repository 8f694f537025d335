/** `rightofway release`: an operator ends the waits that a provider imposed on a scope of a running gateway. */
import { Console, Effect } from 'effect'
import { Argument, Command, Flag } from 'effect/cli'
import { attempt } from './failure.ts'
import { journalFlags, journalPath, jsonFlag } from './flags.ts'

const urlFlag = Flag.String('url').pipe(
  Flag.withDescription('Where the gateway listens'),
  Flag.withDefault('http://127.0.0.1:4517'),
)

export const releaseVerb = Command.make(
  'release',
  {
    scope: Argument.String('scope').pipe(Argument.withDescription('Name of the scope, as /lanes shows it')),
    ...journalFlags,
    url: urlFlag,
    json: jsonFlag,
  },
  Effect.fn(function* ({ scope, journal, config, url, json }) {
    const path = yield* journalPath(journal, config)
    const { release, sentence } = yield* attempt(() => import('./releasing.ts'))
    const released = yield* attempt(() => release(url, path, scope))
    yield* Console.log(json ? JSON.stringify(released) : sentence(released))
  }),
).pipe(Command.withDescription('End the waits that a provider imposed on a scope of a running gateway'))
