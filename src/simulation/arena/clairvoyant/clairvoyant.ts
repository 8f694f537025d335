/**
 * What nobody can beat: a bound, not a schedule. It knows the rules with their parameters and every
 * arrival beforehand, and asks of each moment, for that moment alone, how many primaries could have
 * been accepted by then at most. So no schedule, whatever it knows, has a smaller mean wait of
 * primaries, leaves fewer of them unserved, or has more input tokens accepted within the duration.
 * The bounds hold one by one; one schedule seldom meets them all.
 *
 * Method. Rules are relaxed (`relaxation.ts`). By a time t the accepted primaries fit the capacity
 * of every stretch that ends at t: Moore and Hodgson's rule, backwards in time and dropping the
 * largest whenever a stretch is too full, finds the greatest number that does. Primaries waiting at t
 * are at least the rest, and the waits add up to those over all t.
 */
import { rulesOf, runOffMs } from '../run.ts'
import type { Scenario, Stream } from '../scenario.ts'
import { largestTokens } from '../size.ts'
import type { Traces } from '../trace.ts'
import { arrivalsOf, type TimedCall } from '../traffic.ts'
import { Largest } from './largest.ts'
import { type Relaxation, relax } from './relaxation.ts'

export interface Bound {
  /** No schedule's primaries wait less on average, ms, as `Measured` counts; 0 without primaries. */
  readonly meanPrimaryWaitMs: number
  /** No schedule leaves fewer primaries unserved. */
  readonly primariesUnserved: number
  /** No schedule has more input tokens accepted within the duration, both lanes together; Infinity for no bound. */
  readonly acceptedTokens: number
  /** Of these, what is left for auxiliaries where all primaries that can be served are. */
  readonly auxiliaryTokens: number
}

/** Between two looks, ms, where nothing arrives. */
const lookMs = 500

/** Streams whose calls come as earlier ones end: when they come depends on the schedule. */
const followsItself = ({ arrival }: Stream): boolean =>
  arrival.kind === 'closed-loop' || arrival.kind === 'turns'

interface Primary {
  readonly atMs: number
  /** Before this no schedule gets it accepted; Infinity for never. */
  readonly releasedMs: number
  /** What it takes of each rule. */
  readonly units: ReadonlyArray<number>
  readonly inputTokens: number
}

/** The bound of a scenario at its seed. Where primaries follow each other the bound on waits is 0. */
export const clairvoyant = (scenario: Scenario, traces: Traces = new Map()): Bound => {
  const { durationMs, provider, traffic } = scenario
  const { latency } = provider
  const mostOutput = Math.max(
    0,
    ...traffic.map(({ outputTokens }) =>
      outputTokens === null ? Number.POSITIVE_INFINITY : largestTokens(outputTokens),
    ),
  )
  const longestMs = latency.firstTokenMs + latency.perOutputTokenMs * mostOutput
  const rules = rulesOf(scenario)
    .map((spec) => relax(spec, { latency, longestMs }))
    .filter((rule) => rule !== null)
  const primaries = primariesOf(scenario, traces, rules)
  const never = primaries.filter(({ releasedMs }) => releasedMs === Number.POSITIVE_INFINITY)
  const acceptedTokens = Math.min(
    offeredTokens(scenario, traces),
    ...rules.map((rule) => mostTokens(rule, scenario)),
  )
  const servable = primaries.reduce(
    (sum, { releasedMs, inputTokens }) => (releasedMs < durationMs ? sum + inputTokens : sum),
    0,
  )
  const bounded = traffic.every((stream) => stream.lane === 'auxiliary' || !followsItself(stream))
  const waits = bounded ? waitingTimeMs(primaries, rules, durationMs + runOffMs(scenario)) : null
  return {
    meanPrimaryWaitMs: waits === null || primaries.length === 0 ? 0 : waits.sumMs / primaries.length,
    primariesUnserved: Math.max(never.length, waits?.unserved ?? 0),
    acceptedTokens,
    auxiliaryTokens: Math.max(0, acceptedTokens - servable),
  }
}

const callsOf = (scenario: Scenario, traces: Traces, stream: Stream): ReadonlyArray<TimedCall> =>
  followsItself(stream)
    ? []
    : arrivalsOf(scenario, stream, scenario.traffic.indexOf(stream), traces).filter(
        ({ atMs }) => atMs < scenario.durationMs,
      )

const primariesOf = (
  scenario: Scenario,
  traces: Traces,
  rules: ReadonlyArray<Relaxation>,
): ReadonlyArray<Primary> =>
  scenario.traffic
    .filter(({ lane }) => lane === 'primary')
    .flatMap((stream) => callsOf(scenario, traces, stream))
    .map(({ atMs, call }) => {
      const units = rules.map(({ unitsOf }) => unitsOf(call))
      return { atMs, releasedMs: releaseOf(rules, units, atMs), units, inputTokens: call.inputTokens }
    })
    .sort((one, other) => one.atMs - other.atMs)

const releaseOf = (rules: ReadonlyArray<Relaxation>, units: ReadonlyArray<number>, atMs: number): number => {
  let releasedMs = atMs
  for (const [index, { earliestMs }] of rules.entries()) {
    const earliest = earliestMs(units[index]!, releasedMs)
    if (earliest === null) return Number.POSITIVE_INFINITY
    releasedMs = Math.max(releasedMs, earliest)
  }
  return releasedMs
}

/** Least total time that primaries wait until the end, and how many still wait then. */
const waitingTimeMs = (
  primaries: ReadonlyArray<Primary>,
  rules: ReadonlyArray<Relaxation>,
  endMs: number,
): { readonly sumMs: number; readonly unserved: number } => {
  const changes = new Set<number>(primaries.flatMap(({ atMs, releasedMs }) => [atMs, releasedMs]))
  for (let atMs = 0; atMs < endMs; atMs += lookMs) changes.add(atMs)
  const times = [...changes, endMs].filter((atMs) => atMs <= endMs).sort((one, other) => one - other)
  const waiting = new Waiting(primaries, rules)
  let sumMs = 0
  let unserved = 0
  for (let index = 1; index < times.length; index += 1) {
    const [fromMs, toMs] = [times[index - 1]!, times[index]!]
    if (toMs === fromMs) continue
    // Nothing comes in between, so those that may be accepted by its end are the most of the whole stretch.
    unserved = waiting.least(fromMs, toMs)
    sumMs += unserved * (toMs - fromMs)
  }
  return { sumMs, unserved }
}

class Waiting {
  readonly #byRelease: ReadonlyArray<Primary>
  readonly #byArrival: ReadonlyArray<Primary>
  readonly #rules: ReadonlyArray<Relaxation>
  /** Per rule and primary in the order of release, what those before it take. */
  readonly #unitsBefore: ReadonlyArray<ReadonlyArray<number>>

  constructor(primaries: ReadonlyArray<Primary>, rules: ReadonlyArray<Relaxation>) {
    this.#byArrival = primaries
    this.#byRelease = primaries.toSorted((one, other) => one.releasedMs - other.releasedMs)
    this.#rules = rules
    this.#unitsBefore = rules.map((_, index) => {
      let sum = 0
      return this.#byRelease.map(({ units }) => {
        const before = sum
        sum += units[index]!
        return before
      })
    })
  }

  /** How many of those that came by `fromMs` wait just before `toMs` at least. */
  least(fromMs: number, toMs: number): number {
    const came = countUpTo(this.#byArrival, ({ atMs }) => atMs, fromMs)
    const released = countUpTo(this.#byRelease, ({ releasedMs }) => releasedMs, fromMs)
    let accepted = released
    for (const [index, rule] of this.#rules.entries()) {
      accepted = Math.min(accepted, this.#mostAccepted(index, rule, released, toMs))
    }
    return came - accepted
  }

  #mostAccepted(index: number, { capacity }: Relaxation, released: number, toMs: number): number {
    const kept = new Largest()
    const before = this.#unitsBefore[index]!
    let sum = 0
    for (let place = released - 1; place >= 0; place -= 1) {
      const { releasedMs, units } = this.#byRelease[place]!
      kept.push(units[index]!)
      sum += units[index]!
      const most = capacity(releasedMs, toMs)
      while (sum > most + 1e-6) sum -= kept.pop()
      // A longer stretch has more room, so all those before fit as well.
      if (sum + before[place]! <= most) return kept.size + place
    }
    return kept.size
  }
}

const countUpTo = <Item>(sorted: ReadonlyArray<Item>, of: (item: Item) => number, most: number): number => {
  let [low, high] = [0, sorted.length]
  while (low < high) {
    const middle = (low + high) >> 1
    if (of(sorted[middle]!) <= most) low = middle + 1
    else high = middle
  }
  return low
}

const offeredTokens = (scenario: Scenario, traces: Traces): number =>
  scenario.traffic.some(followsItself)
    ? Number.POSITIVE_INFINITY
    : scenario.traffic
        .flatMap((stream) => callsOf(scenario, traces, stream))
        .reduce((sum, { call }) => sum + call.inputTokens, 0)

/** Most input tokens that the rule lets in within the duration; Infinity where it does not count tokens. */
const mostTokens = ({ unitsOf, capacity }: Relaxation, { durationMs, traffic }: Scenario): number => {
  const most = capacity(0, durationMs - 1)
  const probe = { inputTokens: 2, outputTokens: 0 } as Parameters<typeof unitsOf>[0]
  if (unitsOf(probe) === 2) return most
  const largest = Math.max(
    0,
    ...traffic.map(({ inputTokens }) =>
      inputTokens === null ? Number.POSITIVE_INFINITY : largestTokens(inputTokens),
    ),
  )
  return unitsOf(probe) === 1 ? most * largest : Number.POSITIVE_INFINITY
}
