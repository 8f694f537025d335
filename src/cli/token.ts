/** `rightofway token add`, `list` and `revoke`: who may use a gateway that others can reach. */
import { Console, Effect, Option } from 'effect'
import { Argument, Command, Flag } from 'effect/cli'
import { attempt, CliFailure } from './failure.ts'
import { journalFlags, journalPath, jsonFlag } from './flags.ts'

const pathOf = Effect.fn(function* (journal: Option.Option<string>, config: Option.Option<string>) {
  const { tokensPathOf } = yield* attempt(() => import('../gateway/entrance/tokens.ts'))
  const path = tokensPathOf(yield* journalPath(journal, config))
  if (path !== null) return path
  return yield* new CliFailure({
    message: 'tokens stand beside the journal, and :memory: has no place beside it',
  })
})

const listFlag = (name: string, what: string) =>
  Flag.String(name).pipe(Flag.withDescription(`${what}, with commas between (default: all)`), Flag.optional)

const add = Command.make(
  'add',
  {
    principal: Flag.String('principal').pipe(
      Flag.withDescription('Who its calls count for, whatever they say themselves'),
    ),
    classes: listFlag('classes', 'Priority classes that its calls may have'),
    lanes: listFlag('lanes', 'Lanes that its calls may take'),
    ...journalFlags,
    json: jsonFlag,
  },
  Effect.fn(function* ({ principal, classes, lanes, journal, config, json }) {
    const path = yield* pathOf(journal, config)
    const { rightsOf } = yield* attempt(() => import('./token-rights.ts'))
    const { addToken } = yield* attempt(() => import('../gateway/entrance/tokens.ts'))
    const rights = yield* attempt(() =>
      rightsOf(principal, Option.getOrNull(classes), Option.getOrNull(lanes)),
    )
    const token = yield* attempt(() => addToken(path, rights, Date.now()))
    if (json) return yield* Console.log(JSON.stringify({ token, principal, kept: path }))
    yield* Console.log(token)
    yield* Console.error(
      'It is shown this once. Send it as x-rightofway-token, beside the key of the provider.',
    )
  }),
).pipe(Command.withDescription('Make a token; from the first on, every request needs one'))

const list = Command.make(
  'list',
  { ...journalFlags, json: jsonFlag },
  Effect.fn(function* ({ journal, config, json }) {
    const path = yield* pathOf(journal, config)
    const { readTokens } = yield* attempt(() => import('../gateway/entrance/tokens.ts'))
    const found = yield* attempt(() => readTokens(path))
    const tokens = (found ?? []).map(({ digest: _, ...shown }) => shown)
    if (json) return yield* Console.log(JSON.stringify(tokens))
    if (found === null) return yield* Console.log('no tokens: whoever reaches the gateway may use it')
    for (const { id, principal, classes, lanes, createdAt } of tokens) {
      const made = new Date(createdAt).toISOString().slice(0, 10)
      yield* Console.log(
        `${id}  ${principal}  classes ${classes?.join(',') ?? 'all'}  lanes ${lanes?.join(',') ?? 'all'}  made ${made}`,
      )
    }
  }),
).pipe(Command.withDescription('List the tokens, without what would let anybody use them'))

const revoke = Command.make(
  'revoke',
  {
    id: Argument.String('id').pipe(Argument.withDescription('As `token list` shows it')),
    ...journalFlags,
    json: jsonFlag,
  },
  Effect.fn(function* ({ id, journal, config, json }) {
    const path = yield* pathOf(journal, config)
    const { revokeToken } = yield* attempt(() => import('../gateway/entrance/tokens.ts'))
    if (yield* attempt(() => revokeToken(path, id)))
      return yield* Console.log(
        json
          ? JSON.stringify({ revoked: id })
          : `token ${id} is revoked; a running gateway knows within a second`,
      )
    return yield* new CliFailure({ message: `no token has the id ${JSON.stringify(id)}` })
  }),
).pipe(Command.withDescription('Revoke a token; the others stay'))

export const tokenVerb = Command.make('token').pipe(
  Command.withDescription('Say who may use the gateway: tokens with a principal, classes and lanes'),
  Command.withSubcommands([add, list, revoke]),
)
