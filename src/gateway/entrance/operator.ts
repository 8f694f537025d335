/** The operator's actions on a running gateway. The operator is any person that can read the installation's secret. */
import { createHmac, timingSafeEqual } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import type { LaneHost } from '../../host/host.ts'

/** Field that carries the operator's token. */
export const operatorHeader = 'x-rightofway-operator'

/** Derived from the installation's secret, so that the right to read that file makes an operator. */
export const operatorToken = (secret: string): string =>
  createHmac('sha256', secret).update('rightofway operator').digest('hex')

export const isOperator = ({ headers }: IncomingMessage, token: string): boolean => {
  const said = Buffer.from(String(headers[operatorHeader] ?? ''))
  const known = Buffer.from(token)
  return said.byteLength === known.byteLength && timingSafeEqual(said, known)
}

/** What came of a request to release a scope's waits. */
export type Release =
  | { readonly released: string; readonly wait: unknown }
  | { readonly unknown: string; readonly known: ReadonlyArray<string> }

/** Ends the waits and backoffs that the provider imposed on the scope. Never makes a scope. */
export const releaseScope = (host: LaneHost, scope: string): Release => {
  const status = host.status().find((one) => one.scope === scope)
  if (status === undefined) return { unknown: scope, known: host.status().map((one) => one.scope) }
  host.scope(scope).releaseWait()
  return { released: scope, wait: status.wait }
}
