import type { Clock } from '../clock.ts'
import type { ProviderRefusal } from './attempt.ts'
import type { WaitAnswers } from './calls/patience.ts'
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
  readonly waitAnswers: WaitAnswers<ProviderRefusal>
  /** How long a client may stay connected without reading, milliseconds. */
  readonly writeStallMs: number
  /** How often a waiting call is looked after, milliseconds. */
  readonly tickMs: number
  /** Whether waiting clients hear interim answers (102). */
  readonly sendsInterim: boolean
}
