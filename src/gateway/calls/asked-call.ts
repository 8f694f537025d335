import type { Call } from '../../../machines/index.ts'
import type { ScopeRunner } from '../../host/scope-runner.ts'
import type { Upstream } from '../config/upstreams.ts'
import type { BodyWeight } from '../identity/body-weight.ts'
import type { SettledEstimate } from '../identity/estimator.ts'
import type { ArrivingBody } from '../passage/arriving-body.ts'
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
  readonly held: { readonly release: () => void }
  /** The body, where it may still be arriving; then `outbound` has none. */
  readonly upload: ArrivingBody | null
  readonly bodyBytes: number
  /** The same, as it is estimated. */
  readonly weight: BodyWeight
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

/** What the estimator learns from, once the call's usage is known. */
export const settledEstimate = ({ weight, runner, call, estimatedTokens }: AskedCall): SettledEstimate => ({
  weight,
  scope: runner.name,
  priorityClass: call.priorityClass,
  estimated: estimatedTokens,
})
