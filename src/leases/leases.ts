/**
 * Foreground leases between the processes of one user. A process that serves a person writes that into a
 * shared folder, and the other processes delay their background work. A lease that is not renewed ends by
 * itself, so a process that dies or stops delays no other for longer than `ttlMs`.
 */
import { resolve } from 'node:path'
import { InvalidInput } from '../../machines/index.ts'
import { type Clock, systemClock } from '../clock.ts'
import { Beat } from './beat.ts'
import { type Look, lookInto, ownUid, prepareFolder } from './folder.ts'

export interface LeaseOptions {
  /** Must give epoch time: all processes compare with it. Default: the machine's own. */
  readonly clock?: Clock
  /** How long a lease outlives its last heartbeat, milliseconds. Default 3,000; the same in all processes. */
  readonly ttlMs?: number
  /** Default 1,000; at most half of `ttlMs`. */
  readonly heartbeatMs?: number
  /** The oldest answer that `active` may give, milliseconds. Default 250. */
  readonly lookEveryMs?: number
}

export interface LeaseCounters {
  readonly looks: number
  /** Records that the newest look read, at most 128; expired ones do not count. */
  readonly inspected: number
  /** Expired records and abandoned files removed so far. */
  readonly swept: number
  /** Heartbeats and removals that the file system refused so far. */
  readonly failures: number
}

/** One hold on the foreground. Ends with `release`, or `await using`. */
export interface Lease extends AsyncDisposable {
  /**
   * Resolves when other processes can see the lease; rejects when it could not be written. Waiting for it is
   * optional.
   */
  readonly published: Promise<void>
  /**
   * Ends this hold. A second call does nothing. Resolves when the process's last hold is gone from the
   * folder.
   */
  readonly release: () => Promise<void>
}

const checked = (field: string, value: number, most: number): number => {
  if (Number.isFinite(value) && value > 0 && value <= most) return value
  throw new InvalidInput([
    { field: `leases.${field}`, expected: `a number of milliseconds in (0, ${most}]`, got: String(value) },
  ])
}

export class Leases implements AsyncDisposable {
  readonly folder: string
  readonly #clock: Clock
  readonly #ttlMs: number
  readonly #heartbeatMs: number
  readonly #lookEveryMs: number
  readonly #uid = ownUid()
  readonly #own = new Set<string>()
  readonly #listeners = new Map<(active: boolean) => void, boolean>()
  readonly #holds = new Set<symbol>()
  #beat: Beat | null = null
  #seen: { readonly look: Look; readonly atMs: number } | null = null
  #looks = 0
  #swept = 0
  #failures = 0
  #stopPolling: () => void = () => {}

  constructor(folder: string, options: LeaseOptions) {
    this.folder = resolve(folder)
    this.#clock = options.clock ?? systemClock
    this.#ttlMs = checked('ttlMs', options.ttlMs ?? 3_000, 3_600_000)
    this.#heartbeatMs = checked('heartbeatMs', options.heartbeatMs ?? this.#ttlMs / 3, this.#ttlMs / 2)
    this.#lookEveryMs = checked('lookEveryMs', options.lookEveryMs ?? 250, this.#ttlMs)
    prepareFolder(this.folder, this.#uid)
  }

  get counters(): LeaseCounters {
    const inspected = this.#seen?.look.inspected ?? 0
    return { looks: this.#looks, inspected, swept: this.#swept, failures: this.#failures }
  }

  /**
   * Tells the other processes that this process serves a person. Holds are counted: the last release ends the
   * lease.
   */
  hold(): Lease {
    const hold = Symbol('hold')
    this.#holds.add(hold)
    this.#beat ??= new Beat({
      folder: this.folder,
      clock: this.#clock,
      ttlMs: this.#ttlMs,
      heartbeatMs: this.#heartbeatMs,
      own: this.#own,
      failed: () => {
        this.#failures += 1
      },
    })
    const { published } = this.#beat
    // A caller that does not wait sees a failure in the counters. The next heartbeat tries again.
    published.catch(() => {})
    this.#tell()
    let released: Promise<void> | null = null
    const release = (): Promise<void> => {
      released ??= this.#release(hold)
      return released
    }
    return { published, release, [Symbol.asyncDispose]: release }
  }

  /**
   * Holds while `fn` runs, until its result has settled. A stream that `fn` reads to its end is held
   * throughout.
   */
  async during<A>(fn: () => A | PromiseLike<A>): Promise<Awaited<A>> {
    const lease = this.hold()
    try {
      return await fn()
    } finally {
      await lease.release()
    }
  }

  /** Returns `stream` with a hold from its first read to its end, failure or abandonment. */
  async *throughout<T>(stream: AsyncIterable<T>): AsyncGenerator<T, void, undefined> {
    const lease = this.hold()
    try {
      yield* stream
    } finally {
      await lease.release()
    }
  }

  /** Whether this process or another serves a person. Looks into the folder when the last look is too old. */
  active(): boolean {
    return this.#holds.size > 0 || this.#look().active
  }

  /** Calls `listener` at once, and with every change. Returns a function that stops the watch. */
  watch(listener: (active: boolean) => void): () => void {
    const active = this.active()
    // A key of its own, so that one function may watch twice.
    const told = (now: boolean) => listener(now)
    if (this.#listeners.size === 0) this.#poll()
    this.#listeners.set(told, active)
    told(active)
    return () => {
      this.#listeners.delete(told)
      if (this.#listeners.size === 0) this.#stopPolling()
    }
  }

  /** Ends every hold and every watch. */
  async close(): Promise<void> {
    this.#listeners.clear()
    this.#stopPolling()
    this.#holds.clear()
    await this.#endBeat()
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close()
  }

  async #release(hold: symbol): Promise<void> {
    if (!this.#holds.delete(hold) || this.#holds.size > 0) return
    this.#tell()
    await this.#endBeat()
  }

  async #endBeat(): Promise<void> {
    const beat = this.#beat
    this.#beat = null
    await beat?.stop()
  }

  #look(): Look {
    const nowMs = this.#clock.now()
    const ageMs = this.#seen === null ? Number.POSITIVE_INFINITY : nowMs - this.#seen.atMs
    // A clock that was set back must not keep an old answer.
    if (this.#seen !== null && ageMs >= 0 && ageMs < this.#lookEveryMs) return this.#seen.look
    const look = lookInto(this.folder, { nowMs, ttlMs: this.#ttlMs, uid: this.#uid, own: this.#own })
    this.#seen = { look, atMs: nowMs }
    this.#looks += 1
    this.#swept += look.swept
    return look
  }

  #poll(): void {
    this.#stopPolling = this.#clock.after(this.#lookEveryMs, () => {
      this.#tell()
      this.#poll()
    })
  }

  #tell(): void {
    if (this.#listeners.size === 0) return
    const active = this.active()
    for (const [listener, before] of this.#listeners) {
      if (before === active) continue
      this.#listeners.set(listener, active)
      listener(active)
    }
  }
}

/**
 * Opens the folder that the processes share, and makes it when it is missing. Throws `InvalidInput` when it
 * is not this user's own private folder. Opening starts nothing: `hold` and `watch` do.
 */
export const openLeases = (folder: string, options: LeaseOptions = {}): Leases => new Leases(folder, options)
