/**
 * Places in the queue whose clients went away. An SDK that loses patience sends the same request
 * again by itself, and nothing in it names the first try: the same client, call and body within a
 * short time take up the place that was left, instead of a new one at the end.
 */
import { createHash } from 'node:crypto'
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Clock } from '../../clock.ts'
import type { AskedCall } from './asked-call.ts'

/**
 * How long a place waits for its client, milliseconds. The SDKs pause 8 s at most between two tries.
 * Meanwhile it counts as any other in the queue: that of a primary keeps auxiliaries back.
 */
export const keptMs = 10_000

/** Places kept at a time, at most. A client that leaves while there are as many loses its own. */
export const mostKept = 1_000

/** A call whose client is away. */
export interface Absentee {
  /** False once its turn has come: what is on its way to nobody is not given to somebody. */
  readonly isQueued: boolean
  takeOver(asked: AskedCall, request: IncomingMessage, response: ServerResponse): void
  /** Its time has passed, or the gateway closes. */
  nobodyCame(): void
}

interface Kept {
  readonly scope: string
  readonly bodyBytes: number
  readonly statedId: string | null
  readonly fingerprint: string
  readonly cancelExpiry: () => void
}

export class KeptPlaces {
  readonly #clock: Clock
  /** The one that left first comes first. */
  readonly #kept = new Map<Absentee, Kept>()
  #closed = false

  constructor(clock: Clock) {
    this.#clock = clock
  }

  get size(): number {
    return this.#kept.size
  }

  /** False when there is no room. Of the body a digest is kept, so that it need not stay in memory. */
  keep(call: Absentee, asked: AskedCall): boolean {
    if (this.#closed || this.#kept.size >= mostKept) return false
    const cancelExpiry = this.#clock.after(keptMs, () => {
      this.#kept.delete(call)
      call.nobodyCame()
    })
    const { runner, bodyBytes, statedId } = asked
    const fingerprint = fingerprintOf(asked)
    this.#kept.set(call, { scope: runner.name, bodyBytes, statedId, fingerprint, cancelExpiry })
    return true
  }

  /**
   * The longest kept place that `asked` may take up; it is kept no longer. Null when there is none.
   * A place of the same key that it may not take up is given up: the key is that of the new call.
   */
  take(asked: AskedCall): Absentee | null {
    const { runner, bodyBytes, statedId } = asked
    let fingerprint: string | null = null
    for (const [call, kept] of this.#kept) {
      if (kept.scope !== runner.name || kept.statedId !== statedId || !call.isQueued) continue
      // A digest costs time: it is made only when there is something to compare it with.
      if (kept.bodyBytes === bodyBytes) fingerprint ??= fingerprintOf(asked)
      const isSame = kept.bodyBytes === bodyBytes && kept.fingerprint === fingerprint
      if (!isSame && statedId === null) continue
      this.forget(call)
      if (isSame) return call
      call.nobodyCame()
    }
    return null
  }

  forget(call: Absentee): void {
    this.#kept.get(call)?.cancelExpiry()
    this.#kept.delete(call)
  }

  /** Gives every place up and keeps no more. */
  close(): void {
    this.#closed = true
    for (const call of [...this.#kept.keys()]) {
      this.forget(call)
      call.nobodyCame()
    }
  }
}

/**
 * SHA-256 over what makes two requests the same call: a place must not pass to another lane,
 * principal or key, and a request with an idempotency key is the same only as one with that key.
 */
const fingerprintOf = ({ call, runner, outbound, statedId }: AskedCall): string => {
  const { lane, priorityClass, principal, turnId } = call
  const { origin, path, body } = outbound
  const said = [runner.name, origin, path, lane, priorityClass, principal, turnId, statedId]
  const hash = createHash('sha256').update(JSON.stringify(said)).update('\n')
  if (Buffer.isBuffer(body)) hash.update(body)
  return hash.digest('base64')
}
