/** The work of `serve`, apart from its flags: they are read before any of this is loaded. */
import { randomBytes } from 'node:crypto'
import { mkdirSync } from 'node:fs'
import { dirname } from 'node:path'
import { Console, Effect } from 'effect'
import { hostSource, makeInspector } from '../../inspector/server.ts'
import type { ScopeContext } from '../../machines/index.ts'
import { defaultJournal, type GatewayConfig } from '../gateway/config/config.ts'
import { type Gateway, startGateway } from '../gateway/gateway.ts'
import { installationSecret } from '../gateway/identity/credential.ts'
import { type LaneHost, openHost } from '../host/host.ts'
import { kernelOf } from '../host/internal.ts'
import type { JournalFailure } from '../journal/journal.ts'
import { readConfig } from './configuration.ts'
import { attempt, CliFailure, lineOf, tryAgainCode } from './failure.ts'
import { type LogLevel, linesOf, ServeLog } from './serve-log.ts'

export interface ServeRequest {
  /** Stated on the command line; they win over the file. */
  readonly flags: {
    readonly host?: string
    readonly port?: number
    readonly journal?: string
    readonly allowedHosts?: ReadonlyArray<string>
    readonly insecure?: boolean
  }
  readonly configPath: string | null
  /** Lets a person act in the inspector, with a random token that is made at the start. */
  readonly allowActions: boolean
  readonly log: {
    readonly level: LogLevel
    /** Lines of JSON, also for the greeting. */
    readonly json: boolean
    /** No greeting. */
    readonly isQuiet: boolean
  }
}

/**
 * Runs until it is interrupted, then closes. Waiting calls keep their places; answers under way get their
 * grace.
 */
export const serve = (request: ServeRequest) =>
  Effect.scoped(
    Effect.gen(function* () {
      const config = yield* attempt(() => readConfig(request))
      const log = new ServeLog({ ...request.log, write: (line) => console.error(line), now: Date.now })
      const { gateway, host, token } = yield* Effect.acquireRelease(
        attempt(() => open(config, request.allowActions)),
        (service) => Effect.promise(() => close(service, config.closeGraceMs)),
      )
      if (!request.log.isQuiet)
        yield* Console.log(greeting(gateway, config, host.status().length, { token, json: request.log.json }))
      yield* Effect.acquireRelease(
        Effect.sync(() => follow(request, { gateway, host }, log)),
        (stop) => Effect.sync(stop),
      )
      const failure = yield* journalFailure(host)
      yield* Console.error(`rightofway: ${farewell(failure, config.closeGraceMs)}`)
      yield* Effect.promise(() => answersDone(gateway, config.closeGraceMs))
      return yield* new CliFailure({ message: lineOf(failure), code: tryAgainCode, isShown: true })
    }),
  )

/** Logs what the scopes do, and takes the policies of the config file again on SIGHUP. Returns how to stop. */
const follow = (
  request: ServeRequest,
  { gateway, host }: Pick<Service, 'gateway' | 'host'>,
  log: ServeLog,
): (() => void) => {
  const kernel = kernelOf(host)
  const waits = new Map<string, ScopeContext['wait']>()
  const stopScopes = kernel.observe((observation) => {
    const { scope, event, position } = observation
    const runner = kernel.runners.get(scope)
    // The first entry of a new scope is the policy that it opens with: that is no change.
    const opens = runner?.record.uncoveredFrom === position && kernel.journal.recall(scope) === null
    if (opens && event.type === 'policy.changed') return
    const wait = runner?.context.wait ?? null
    for (const line of linesOf(observation, wait, waits.get(scope) ?? null)) log.log(line)
    if (wait === null) waits.delete(scope)
    else waits.set(scope, wait)
  })
  const stopFaults = gateway.whenFaulty((count) =>
    log.log({ level: 'error', event: 'fault of the gateway', fields: { count } }),
  )
  const warn = (): void => {
    for (const warning of gateway.warnings)
      log.log({ level: 'warn', event: 'configuration', fields: { warning } })
  }
  const reload = (): void => {
    try {
      gateway.usePolicies(readConfig(request).policies)
      log.log({ level: 'info', event: 'policies read again', fields: { file: request.configPath } })
      warn()
    } catch (error) {
      log.log({ level: 'error', event: 'policies not read again', fields: { problem: lineOf(error) } })
    }
  }
  warn()
  process.on('SIGHUP', reload)
  return () => {
    process.off('SIGHUP', reload)
    stopFaults()
    stopScopes()
  }
}

const journalFailure = (host: LaneHost): Effect.Effect<JournalFailure> =>
  Effect.callback<JournalFailure>((resume) => {
    kernelOf(host).whenFailed((failure) => resume(Effect.succeed(failure)))
  })

/** Said once: a journal that has failed does not come back in the same process, since nobody knows what it kept. */
const farewell = (failure: JournalFailure, graceMs: number): string =>
  `THE JOURNAL HAS FAILED and nothing is admitted any more: ${lineOf(failure)}. ` +
  `Answers under way have ${graceMs} ms; then this process ends with code ${tryAgainCode}, to be started again ` +
  'once there is room on the disk and it can be written: waiting calls are in the journal and come back.'

/** Long enough for a probe to see it at `/healthz`, milliseconds. */
const leastFarewellMs = 1_000
const lookEveryMs = 100

const answersDone = async (gateway: Gateway, graceMs: number): Promise<void> => {
  const from = performance.now()
  const passed = (): number => performance.now() - from
  while (passed() < leastFarewellMs || (gateway.liveCalls > 0 && passed() < graceMs)) {
    await new Promise((resolve) => setTimeout(resolve, lookEveryMs))
  }
}

interface Service {
  /** The token for the inspector's operator; null when the inspector is read-only. */
  readonly token: string | null
  readonly host: LaneHost
  readonly gateway: Gateway
}

const inspectorPrefix = '/inspector'

const open = async (config: GatewayConfig, allowActions: boolean): Promise<Service> => {
  if (config.journal === defaultJournal) mkdirSync(dirname(defaultJournal), { recursive: true, mode: 0o700 })
  const host = await openHost({
    journal: config.journal,
    // A supervisor that starts the next one while the last one ends should find it waiting, not failing.
    lockWaitMs: 60_000,
    onLocked: ({ message }) => console.error(`rightofway waits: ${message}`),
  })
  try {
    const token = allowActions ? randomBytes(18).toString('base64url') : null
    const { allowedHosts } = config
    const inspector = makeInspector(hostSource(host), {
      allowedHosts,
      ...(token === null ? {} : { allowActions, token }),
    })
    const mount = { prefix: inspectorPrefix, ...inspector }
    const gateway = await startGateway({ host, config, secret: installationSecret(config.journal), mount })
    return { host, gateway, token }
  } catch (error) {
    await host.close()
    throw error
  }
}

/**
 * The host lives slightly longer than the gateway's grace, so that answers that are cut off are still
 * recorded.
 */
const close = async ({ host, gateway }: Service, graceMs: number): Promise<void> => {
  const hostClosed = host.close({ graceMs: graceMs + 1_000 })
  await gateway.close({ graceMs })
  await hostClosed
}

const body = JSON.stringify({
  model: 'emulator-small',
  max_tokens: 24,
  stream: true,
  messages: [{ role: 'user', content: 'Hello' }],
})

const greeting = (
  { url }: Gateway,
  { journal }: GatewayConfig,
  scopes: number,
  { token, json }: { readonly token: string | null; readonly json: boolean },
): string => {
  const inspector = `${url}${inspectorPrefix}/`
  if (json)
    return JSON.stringify({
      ...{ event: 'listening', url, journal, scopes, lanes: `${url}/lanes`, inspector },
      ...(token === null ? {} : { operatorToken: token }),
    })
  return [
    `rightofway listens on ${url}`,
    `journal  ${journal}${scopes === 0 ? '' : ` (${scopes} scope${scopes === 1 ? '' : 's'} recovered)`}`,
    `lanes    ${url}/lanes`,
    `inspect  ${inspector}${token === null ? '' : `   operator token: ${token}`}`,
    `clients  ANTHROPIC_BASE_URL=${url}/anthropic  OPENAI_BASE_URL=${url}/openai/v1`,
    'try it, without a key or a network:',
    `curl -N ${url}/emulator/anthropic/v1/messages -H 'x-api-key: any' -H 'content-type: application/json' -d '${body}'`,
  ].join('\n')
}
