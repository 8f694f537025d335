/** Follows a running gateway: logs what it and its scopes do, and reads the policies again on SIGHUP. */
import type { ScopeContext } from '../../machines/index.ts'
import type { GatewayConfig } from '../gateway/config/config.ts'
import type { Gateway } from '../gateway/gateway.ts'
import type { LaneHost } from '../host/host.ts'
import { kernelOf } from '../host/internal.ts'
import { JournalFailure } from '../journal/journal.ts'
import { readConfig, type Stated } from './configuration.ts'
import { lineOf } from './failure.ts'
import { linesOf, type ServeLog } from './serve-log.ts'

export interface Followed {
  readonly stated: Stated
  /** The configuration that the gateway was started with. */
  readonly config: GatewayConfig
  readonly gateway: Gateway
  readonly host: LaneHost
}

/** Returns how to stop. */
export const follow = (followed: Followed, log: ServeLog): (() => void) => {
  const { stated, config, gateway, host } = followed
  const stops = [logScopes(host, log), logGateway(gateway, log)]
  const warn = (): void => {
    for (const warning of gateway.warnings)
      log.log({ level: 'warn', event: 'configuration', fields: { warning } })
  }
  const reload = (): void => {
    try {
      const next = readConfig(stated)
      gateway.usePolicies(next.policies)
      log.log({ level: 'info', event: 'policies read again', fields: { file: stated.configPath } })
      warn()
      const later = changedFields(config, next).join(', ')
      if (later !== '')
        log.log({
          level: 'warn',
          event: 'not read again',
          fields: { fields: later, until: 'the next start' },
        })
    } catch (error) {
      log.log({ level: 'error', event: 'policies not read again', fields: { problem: lineOf(error) } })
    }
  }
  warn()
  process.on('SIGHUP', reload)
  return () => {
    process.off('SIGHUP', reload)
    for (const stop of stops) stop()
  }
}

/** Settings beside the policies that differ: they need a new start. */
const changedFields = (before: GatewayConfig, after: GatewayConfig): ReadonlyArray<string> =>
  (Object.keys(after) as Array<keyof GatewayConfig>).filter(
    (field) => field !== 'policies' && JSON.stringify(before[field]) !== JSON.stringify(after[field]),
  )

const logScopes = (host: LaneHost, log: ServeLog): (() => void) => {
  const kernel = kernelOf(host)
  const waits = new Map<string, ScopeContext['wait']>()
  const stopFailures = kernel.whenScopeFails((scope, cause) => {
    // A journal that fails stops every scope; the farewell says it once.
    if (cause instanceof JournalFailure) return
    log.log({ level: 'error', event: 'scope stopped', fields: { scope, problem: lineOf(cause) } })
  })
  const stopEvents = kernel.observe((observation) => {
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
  return () => {
    stopFailures()
    stopEvents()
  }
}

const logGateway = (gateway: Gateway, log: ServeLog): (() => void) =>
  gateway.notes((note) => {
    if (note.kind === 'fault')
      log.log({ level: 'error', event: 'fault of the gateway', fields: { count: note.count } })
    else
      log.log({
        level: 'info',
        event: 'refused at the door',
        fields: { problem: note.problem, status: note.status },
      })
  })
