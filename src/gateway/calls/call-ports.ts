import type { Clock } from '../../clock.ts'
import type { LimitReader } from '../answers/reading.ts'
import type { KeepAlive } from '../config/config.ts'
import type { Counters } from '../config/counters.ts'
import type { TokenEstimator } from '../identity/estimator.ts'
import type { ScopeFinder } from '../identity/scopes.ts'
import type { Transport } from '../passage/transport.ts'
import type { ProviderRefusal } from './attempt.ts'
import type { KeptPlaces } from './kept-places.ts'
import type { WaitAnswers } from './patience.ts'
import type { StatedWaits } from './stated-waits.ts'

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
  /** How often the connection of a waiting call is kept from looking dead, milliseconds; 0 for never. */
  readonly keepAliveMs: number
  readonly keepAlive: KeepAlive
  readonly statedWaits: StatedWaits
}
