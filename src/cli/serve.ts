/** `rightofway serve`: runs the gateway until it is told to stop. */
import { Effect, Option } from 'effect'
import { Command, Flag } from 'effect/cli'
import { attempt } from './failure.ts'
import { configFlag, journalFlag, jsonFlag } from './flags.ts'

const hostFlag = Flag.String('host').pipe(
  Flag.withDescription('Address to listen on (default 127.0.0.1)'),
  Flag.optional,
)
const portFlag = Flag.Int('port').pipe(
  Flag.withAlias('p'),
  Flag.withDescription('Port to listen on, 0 for a free one (default 4517)'),
  Flag.optional,
)
const actionsFlag = Flag.Boolean('allow-actions').pipe(
  Flag.withDescription('Let a person release waits and change policies in the inspector, with a token'),
  Flag.withDefault(false),
)

const insecureFlag = Flag.Boolean('insecure').pipe(
  Flag.withDescription('Listen on an address that others reach without asking them for a token'),
  Flag.withDefault(false),
)

const hostsFlag = Flag.String('allowed-hosts').pipe(
  Flag.withDescription(
    'Names that requests may be sent to beside those of this machine, with commas between',
  ),
  Flag.optional,
)

const levelFlag = Flag.Literals('log-level', ['debug', 'info', 'warn', 'error']).pipe(
  Flag.withDescription('The least grave lines that are logged (default info)'),
  Flag.withDefault('info' as const),
)

const quietFlag = Flag.Boolean('quiet').pipe(
  Flag.withAlias('q'),
  Flag.withDescription('Say nothing but errors'),
  Flag.withDefault(false),
)

export const serveVerb = Command.make(
  'serve',
  {
    host: hostFlag,
    port: portFlag,
    journal: journalFlag,
    config: configFlag,
    allowActions: actionsFlag,
    insecure: insecureFlag,
    allowedHosts: hostsFlag,
    logLevel: levelFlag,
    quiet: quietFlag,
    json: jsonFlag,
  },
  ({ host, port, journal, config, allowActions, insecure, allowedHosts, logLevel, quiet, json }) =>
    Effect.gen(function* () {
      const { serve } = yield* attempt(() => import('./serving.ts'))
      yield* serve({
        flags: {
          ...Option.match(host, { onNone: () => ({}), onSome: (value) => ({ host: value }) }),
          ...Option.match(port, { onNone: () => ({}), onSome: (value) => ({ port: value }) }),
          ...Option.match(journal, { onNone: () => ({}), onSome: (value) => ({ journal: value }) }),
          ...Option.match(allowedHosts, {
            onNone: () => ({}),
            onSome: (value) => ({ allowedHosts: value.split(',').map((name) => name.trim()) }),
          }),
          ...(insecure ? { insecure } : {}),
        },
        configPath: Option.getOrNull(config),
        allowActions,
        log: { level: quiet ? 'error' : logLevel, json, isQuiet: quiet },
      })
    }),
).pipe(
  Command.withDescription(
    [
      'Run the gateway: providers behind admission, on this machine.',
      '',
      'Refusals: a 429 before the first byte keeps the call in its place. A wait longer than the call may have is told at once.',
      'Answers: bytes pass unchanged. A stream ends at its own terminal event; one that ends without it counts as failed.',
      'Upstreams: what provably never left this machine is tried three times; everything else is never sent twice.',
      'Clients: a waiting one hears a 102 every interimAnswersMs, or comments with keepAlive "comments"; one that stops',
      '  reading is broken off after writeStallMs.',
      'Access: another address than loopback needs tokens (rightofway token add) or --insecure. Foreign names, pages and',
      '  sites are refused, except allowedHosts and allowedOrigins. The field tls serves HTTPS.',
      'Disk: when the journal fails, nothing is admitted, /healthz says 503, and the process ends with code 75.',
      '  It also tells the size of the journal and its oldest entry. The field retention says what is kept: { "keepMs", "keepBytes" }.',
      '',
      'The fields of the config are explained in docs/gateway.md.',
    ].join('\n  '),
  ),
  Command.withShortDescription('Run the gateway: providers behind admission, on this machine'),
)
