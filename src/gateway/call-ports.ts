import type { Clock } from '../clock.ts'
import type { Counters } from './counters.ts'
import type { TokenEstimator } from './estimator.ts'
import type { KeptPlaces } from './kept-places.ts'
import type { LimitReader } from './reading.ts'
import type { ScopeFinder } from './scopes.ts'
import type { Transport } from './transport.ts'

/** What every call of a gateway shares. */
export interface CallPorts {
  readonly transport: Transport
  readonly estimator: TokenEstimator
  readonly limits: LimitReader
  readonly scopes: ScopeFinder
  readonly counters: Counters
  readonly clock: Clock
  readonly places: KeptPlaces
}
