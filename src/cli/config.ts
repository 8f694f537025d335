/** `rightofway config print` and `config check`: every setting, the policy of each scope, and the source of each value. */
import { Console, Effect, Option } from 'effect'
import { Command, Flag } from 'effect/cli'
import { attempt } from './failure.ts'
import { configFlag, jsonFlag } from './flags.ts'

const scopeFlag = Flag.String('scope').pipe(
  Flag.withDescription('Print every value of the policy that a scope of this name gets'),
  Flag.optional,
)

const print = Command.make(
  'print',
  { config: configFlag, scope: scopeFlag, json: jsonFlag },
  Effect.fn(function* ({ config, scope, json }) {
    const { printed } = yield* attempt(() => import('./printing.ts'))
    const request = { configPath: Option.getOrNull(config), scope: Option.getOrNull(scope), json }
    yield* Console.log(yield* attempt(() => printed(request)))
  }),
).pipe(Command.withDescription('Print every setting and policy with the source of each value'))

const explainFlag = Flag.String('explain').pipe(
  Flag.withDescription('A file with a request, or -: says which row of each table fits it, and why'),
  Flag.optional,
)

const check = Command.make(
  'check',
  { config: configFlag, explain: explainFlag, json: jsonFlag },
  Effect.fn(function* ({ config, explain, json }) {
    const { checked } = yield* attempt(() => import('./checking.ts'))
    const request = { configPath: Option.getOrNull(config), explain: Option.getOrNull(explain), json }
    yield* Console.log(yield* attempt(() => checked(request)))
  }),
).pipe(Command.withDescription('Check the configuration; explain how it takes a request'))

export const configVerb = Command.make('config').pipe(
  Command.withDescription('Look at the configuration'),
  Command.withSubcommands([print, check]),
)
