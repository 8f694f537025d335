/** `rightofway release`: an operator ends the waits that a provider imposed on a scope of a running gateway. */
import { Console, Effect, Option } from 'effect'
import { Argument, Command, Flag } from 'effect/cli'
import { attempt, CliFailure } from './failure.ts'
import { journalFlag } from './flags.ts'

const urlFlag = Flag.String('url').pipe(
  Flag.withDescription('Where the gateway listens'),
  Flag.withDefault('http://127.0.0.1:4517'),
)

const ask = async (url: string, journal: string, scope: string): Promise<string> => {
  const { installationSecret } = await import('../gateway/identity/credential.ts')
  const { operatorHeader, operatorToken } = await import('../gateway/entrance/operator.ts')
  const answer = await fetch(new URL('/lanes/release', url), {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      [operatorHeader]: operatorToken(installationSecret(journal)),
    },
    body: JSON.stringify({ scope }),
  }).catch(() => {
    throw new CliFailure({ message: `no gateway answers at ${url}; name another with --url` })
  })
  const said = (await answer.json()) as {
    readonly detail?: string
    readonly wait?: { readonly kind: string; readonly untilMs: number } | null
  }
  if (!answer.ok) throw new CliFailure({ message: said.detail ?? `the gateway answered ${answer.status}` })
  if (said.wait == null) return `scope ${scope} was not asked to wait; its backoffs are ended`
  return `scope ${scope} no longer waits for ${said.wait.kind} (it would have until ${new Date(said.wait.untilMs).toISOString()})`
}

export const releaseVerb = Command.make(
  'release',
  {
    scope: Argument.String('scope').pipe(Argument.withDescription('Name of the scope, as /lanes shows it')),
    journal: journalFlag,
    url: urlFlag,
  },
  Effect.fn(function* ({ scope, journal, url }) {
    const { defaultJournal } = yield* attempt(() => import('../gateway/config/config.ts'))
    const path = Option.getOrElse(journal, () => defaultJournal)
    yield* Console.log(yield* attempt(() => ask(url, path, scope)))
  }),
).pipe(Command.withDescription('End the waits that a provider imposed on a scope of a running gateway'))
