/**
 * Counts the states, events, decisions and faults that a soak meets. Invariants hold always; a run that never meets a
 * state proves nothing about it, so each of `sometimes` must be met.
 */
import type { ScopeContext } from '../../../machines/index.ts'
import type { Record as JournalRecord } from '../../host/read-record.ts'

/** How often each thing was met, by name. */
export type Coverage = ReadonlyMap<string, number>

const inState = (state: string): string => `state ${state}`
const granted = (reason: string): string => `grant ${reason}`
const deferred = (reason: string): string => `defer ${reason}`

/** Things that a run of some hundred seeds has to meet at least once. */
export const sometimes: ReadonlyArray<string> = [
  ...['idle', 'primaryPending', 'quietRamp.quiet', 'quietRamp.admitting', 'quietRamp.active'].map(inState),
  ...['auxiliaryDraining', 'settled'].map(inState),
  ...['primary', 'open', 'drain', 'fairness', 'dependency', 'nested', 'probe', 'warm-up', 'backfill'].map(
    granted,
  ),
  ...['refused-by-provider', 'preempted', 'provider-wait', 'forecast', 'pacing', 'capacity-full'].map(
    deferred,
  ),
  ...['primary-pending', 'turn-held', 'foreground-active', 'dependencies', 'quota', 'budget'].map(deferred),
  'cancel preempted',
  'reject outcome-unknown',
  'reject already-settled',
  'expire deadline',
  'expire pending-timeout',
  'expire active-timeout',
  'expire unclaimed',
  ...['completed', 'failed', 'cancelled', 'throttled', 'unknown'].map((outcome) => `settled ${outcome}`),
  ...['host.recovered', 'host.closing', 'turn.began', 'turn.ended', 'wait.released', 'call.promoted'].map(
    (type) => `event ${type}`,
  ),
  ...['kill', 'eio', 'close', 'jump', 'slow-sync'].map((kind) => `fault ${kind}`),
  'restart with calls in flight',
]

export class CoverageCounter {
  readonly #met = new Map<string, number>()

  get met(): Coverage {
    return this.#met
  }

  note(name: string): void {
    this.#met.set(name, (this.#met.get(name) ?? 0) + 1)
  }

  /** An entry, with the scope before and after it. */
  entry({ event, decisions }: JournalRecord, before: ScopeContext, after: ScopeContext): void {
    this.note(`event ${event.type}`)
    if (before.state !== after.state) this.note(inState(after.state))
    if (event.type === 'call.settled') this.note(`settled ${event.outcome}`)
    if (event.type === 'host.recovered') {
      const { primaryInFlight, auxiliaryInFlight } = before.counts
      if (primaryInFlight + auxiliaryInFlight > 0) this.note('restart with calls in flight')
      if (after.counters.unknownOutcomes > before.counters.unknownOutcomes) this.note('settled unknown')
    }
    for (const { verdict, reason } of decisions) {
      const isGrant = verdict === 'admit' || verdict === 'release'
      this.note(isGrant ? granted(reason) : `${verdict} ${reason}`)
    }
  }
}

/** The sum of several runs. */
export const summed = (runs: Iterable<Coverage>): Coverage => {
  const sum = new Map<string, number>()
  for (const run of runs) for (const [name, count] of run) sum.set(name, (sum.get(name) ?? 0) + count)
  return sum
}

/** Those of `sometimes` that were never met. */
export const unmet = (coverage: Coverage): ReadonlyArray<string> =>
  sometimes.filter((name) => !coverage.has(name))

/** A line for each thing that was met, the rarest first, and one that names the others. */
export const coverageText = (coverage: Coverage): string => {
  const met = [...coverage].sort(([, one], [, other]) => one - other)
  const missing = unmet(coverage)
  return [
    ...met.map(([name, count]) => `${String(count).padStart(10)}  ${name}`),
    missing.length === 0
      ? 'everything that should be met sometimes was met'
      : `never met: ${missing.join(', ')}`,
  ].join('\n')
}
