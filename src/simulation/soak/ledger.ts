/**
 * Keeps a copy of every journaled entry, and checks each entry against the invariants when it is written. A
 * shadow of every scope is rebuilt from these entries alone.
 */
import { createHash, type Hash } from 'node:crypto'
import { contractPolicy, type ScopeContext } from '../../../machines/index.ts'
import { encodeScope } from '../../../machines/snapshot/codec.ts'
import { readRecord } from '../../host/read-record.ts'
import { Replayed } from '../../host/recovery.ts'
import type { ScopeRunner } from '../../host/scope-runner.ts'
import type { StoredEntry } from '../../journal/journal.ts'
import { InvariantBroken, Witness } from '../witness.ts'
import { Bounds } from './bounds.ts'
import { CoverageCounter } from './coverage.ts'
import { Judge } from './judge.ts'

/** Part of every key, prompt, completion and error that the simulation makes up (I10). */
export const secret = 'S3CR3T'

class Shadow {
  readonly replayed: Replayed
  readonly witness = new Witness(contractPolicy)
  readonly bounds: Bounds | null

  constructor(scope: string, calm: boolean) {
    this.replayed = new Replayed(scope)
    this.bounds = calm ? new Bounds() : null
  }

  get context(): ScopeContext {
    return this.replayed.context
  }

  /** `coverage` counts the entry, the first time that it is taken. */
  take(entry: StoredEntry, coverage: CoverageCounter | null = null): void {
    const record = readRecord('simulated', entry)
    const before = this.context
    const decided = this.replayed.feed(record, entry.position)
    const [recorded, replayed] = [JSON.stringify(record.decisions), JSON.stringify(decided)]
    if (recorded !== replayed) {
      throw new InvariantBroken('I7', `entry ${entry.position} decided ${recorded}, its replay ${replayed}`)
    }
    this.witness.observe(record.event, record.decisions, this.context)
    coverage?.entry(record, before, this.context)
    this.bounds?.observe(record, before, this.context)
  }
}

export class Ledger {
  readonly coverage = new CoverageCounter()
  readonly #judge = new Judge()
  readonly #calm: ReadonlySet<string>
  readonly #trace: Hash = createHash('sha256')
  #entries: StoredEntry[] = []
  #shadows = new Map<string, Shadow>()
  #durable = 0
  #broken: unknown = null
  /** Number of all written entries, lost ones included. */
  written = 0

  /** `calm` names the scopes whose bounds on waiting are numbers. */
  constructor(calm: ReadonlySet<string>) {
    this.#calm = calm
  }

  get durable(): number {
    return this.#durable
  }

  get last(): number {
    return this.#entries.length
  }

  /** Epoch milliseconds of the newest entry. */
  get newestMs(): number {
    return this.#entries.at(-1)?.at ?? 0
  }

  /** The first broken invariant. An error inside the host would only stop its scope. */
  get broken(): unknown {
    return this.#broken
  }

  /** Runs `check`. Its error is kept and thrown on. */
  hold<A>(check: () => A): A {
    try {
      return check()
    } catch (error) {
      this.broke(error)
      throw error
    }
  }

  /** Like `hold`, for callers that must not throw. */
  note(check: () => void): void {
    try {
      check()
    } catch (error) {
      this.broke(error)
    }
  }

  broke(error: unknown): void {
    this.#broken ??= error
  }

  append(entry: StoredEntry): void {
    this.hold(() => this.#append(entry))
  }

  /** The provider gets a dispatch. */
  dispatched(scope: string, callId: string): void {
    this.hold(() => this.#judge.dispatched(scope, callId))
  }

  #append(entry: StoredEntry): void {
    if (entry.position !== this.#entries.length + 1) {
      throw new InvariantBroken('I7', `entry ${entry.position} follows ${this.#entries.length}`)
    }
    if (entry.at < this.newestMs) {
      throw new InvariantBroken(
        'I7',
        `entry ${entry.position} is stamped ${this.newestMs - entry.at} ms back`,
      )
    }
    this.keepsSecrets('a record', entry.record)
    this.trace(`${entry.position} ${entry.scope} ${entry.record}`)
    this.written += 1
    this.#entries.push(entry)
    this.#shadow(entry.scope).take(entry, this.coverage)
  }

  /** Entries through this position are on the disk. */
  synced(through: number): void {
    for (const entry of this.#entries.slice(this.#durable, through)) this.#judge.recorded(entry)
    this.#durable = Math.max(this.#durable, through)
  }

  /** The entries after a crash: all up to `through`. Shadows begin again from these alone. */
  crashed(through: number): void {
    this.synced(through)
    const kept = this.#entries.slice(0, through)
    const lost = new Set(this.#entries.slice(through).map(({ scope }) => scope))
    this.#entries = kept
    for (const scope of lost) this.#shadows.delete(scope)
    for (const entry of kept) if (lost.has(entry.scope)) this.#shadow(entry.scope).take(entry)
    this.trace(`crash, ${through} entries are left`)
  }

  between(after: number, through: number): ReadonlyArray<StoredEntry> {
    return this.#entries.slice(after, through)
  }

  /** The records of one scope, for comparing runs. */
  recordsOf(scope: string): ReadonlyArray<string> {
    return this.#entries.filter((entry) => entry.scope === scope).map(({ record }) => record)
  }

  contextOf(scope: string): ScopeContext | null {
    return this.#shadows.get(scope)?.context ?? null
  }

  get liveCalls(): number {
    let live = 0
    for (const { context } of this.#shadows.values()) {
      const { primaryWaiting, auxiliaryWaiting, primaryInFlight, auxiliaryInFlight } = context.counts
      live += primaryWaiting + auxiliaryWaiting + primaryInFlight + auxiliaryInFlight
    }
    return live
  }

  /** I7: the running scopes equal the journal's scopes, byte for byte. */
  agreesWith(runners: Iterable<ScopeRunner>): void {
    for (const { name, context } of runners) {
      const shadow = this.#shadows.get(name)
      if (shadow === undefined) continue
      const [live, replayed] = [snapshotOf(context), snapshotOf(shadow.context)]
      if (live !== replayed) {
        throw new InvariantBroken('I7', `${name} is ${firstDifference(live, replayed)} in its journal`)
      }
      this.keepsSecrets('a snapshot', live)
    }
  }

  /** I10. */
  keepsSecrets(where: string, text: string): void {
    if (!text.includes(secret)) return
    this.hold(() => {
      throw new InvariantBroken('I10', `a secret is in ${where}: ${text.slice(0, 300)}`)
    })
  }

  /** Checks that every submitted call has ended. */
  finish(): void {
    for (const { witness } of this.#shadows.values()) witness.finish()
  }

  /** Adds a line to the hash of the run. */
  trace(line: string): void {
    this.#trace.update(line).update('\n')
  }

  /** The hash of all events of the run. */
  get hash(): string {
    return this.#trace.copy().digest('hex').slice(0, 16)
  }

  #shadow(scope: string): Shadow {
    const known = this.#shadows.get(scope)
    if (known !== undefined) return known
    const shadow = new Shadow(scope, this.#calm.has(scope))
    this.#shadows.set(scope, shadow)
    return shadow
  }
}

const snapshotOf = (context: ScopeContext): string => JSON.stringify(encodeScope(context))

const firstDifference = (one: string, other: string): string => {
  let at = 0
  while (one[at] === other[at]) at += 1
  const around = (text: string) => JSON.stringify(text.slice(Math.max(0, at - 60), at + 60))
  return `${around(one)}, and ${around(other)}`
}
