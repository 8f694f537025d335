import type { Call } from '../../machines/index.ts'
import type { Clock } from '../clock.ts'
import type { ScopeRunner } from '../host/scope-runner.ts'
import type { Counters } from './counters.ts'
import type { TokenEstimator } from './estimator.ts'
import type { KeptPlaces } from './kept-places.ts'
import type { LimitReader } from './reading.ts'
import type { Transport, TransportRequest } from './transport.ts'
import type { Upstream } from './upstreams.ts'

/** What every call of a gateway shares. */
export interface CallPorts {
  readonly transport: Transport
  readonly estimator: TokenEstimator
  readonly limits: LimitReader
  readonly counters: Counters
  readonly clock: Clock
  readonly places: KeptPlaces
  /** A body is kept in memory from now on, or (negative) no longer, bytes. */
  readonly held: (bytes: number) => void
}

/** What a client asked for, ready to be admitted. */
export interface AskedCall {
  readonly call: Call
  readonly runner: ScopeRunner
  readonly upstream: Upstream
  readonly outbound: TransportRequest
  /** Field in which the upstream is told the call's id; null when it is not. */
  readonly idField: string | null
  readonly bodyBytes: number
  /** Input tokens as estimated, whether or not the client had a count of its own. */
  readonly estimatedTokens: number
  /** The client's idempotency key; null when it sent none. */
  readonly statedId: string | null
  /** How often the client's SDK has already sent it by itself. */
  readonly sdkRetries: number
  /** Shown to the client with the answer; null when there is nothing to say. */
  readonly warning: string | null
}
