import type { Call } from '../../../machines/index.ts'
import type { ScopeRunner } from '../../host/scope-runner.ts'
import type { Upstream } from '../config/upstreams.ts'
import type { HeldBody } from '../passage/body.ts'
import type { TransportRequest } from '../passage/transport.ts'

/** What a client asked for, ready to be admitted. */
export interface AskedCall {
  readonly call: Call
  readonly runner: ScopeRunner
  readonly upstream: Upstream
  readonly outbound: TransportRequest
  /** Field in which the upstream is told the call's id; null when it is not. */
  readonly idField: string | null
  /** The body as it is counted. */
  readonly held: HeldBody
  readonly bodyBytes: number
  /** Input tokens as estimated, whether or not the client had a count of its own. */
  readonly estimatedTokens: number
  /** The client's idempotency key; null when it sent none. */
  readonly statedId: string | null
  /** How often the client's SDK has already sent it by itself. */
  readonly sdkRetries: number
  /** The answer, if it is a success, is an event stream. */
  readonly asksForEvents: boolean
  /** The client did not ask for the usage that its stream is asked for. */
  readonly hidesUsage: boolean
  /** Shown to the client with the answer; null when there is nothing to say. */
  readonly warning: string | null
}
