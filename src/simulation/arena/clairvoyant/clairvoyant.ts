/**
 * A bound that no schedule can beat; it is not a schedule itself. It knows the rules with their parameters
 * and every arrival beforehand. For each moment alone it computes the greatest number of primaries that could
 * have been accepted by then. So no schedule, with any knowledge, has a smaller mean wait of primaries,
 * leaves fewer of them unserved, or has more input tokens accepted within the duration. Each bound holds by
 * itself; one schedule seldom meets them all.
 *
 * Method. Rules are relaxed (`relaxation.ts`). By a time t the accepted primaries fit the capacity of every
 * interval that ends at t. Moore and Hodgson's rule finds the greatest such number: it goes backwards in time
 * and drops the largest call whenever an interval is too full. The primaries beyond that number
 * wait at t, and the sum of their numbers over all t is the total wait.
 */
import { rulesOf, runOffMs } from '../run.ts'
import type { Scenario, Stream } from '../scenario.ts'
import { largestTokens } from '../size.ts'
import type { Traces } from '../trace.ts'
import { arrivalsOf, type TimedCall } from '../traffic.ts'
import { Largest } from './largest.ts'
import { type Relaxation, relax } from './relaxation.ts'

export interface Bound {
  /**
   * The least mean wait of primaries under any schedule, ms, counted as in `Measured`; 0 without primaries.
   */
  readonly meanPrimaryWaitMs: number
  /** The least number of unserved primaries under any schedule. */
  readonly primariesUnserved: number
  /**
   * The most input tokens accepted within the duration under any schedule, both lanes together; Infinity for
   * no bound.
   */
  readonly acceptedTokens: number
  /** The part of these for auxiliaries, when every primary that can be served is served. */
  readonly auxiliaryTokens: number
}

/** Longest interval between two checks without an arrival, ms. */
const lookMs = 500

/** Streams whose calls come when earlier ones end: their times depend on the schedule. */
const followsItself = ({ arrival }: Stream): boolean =>
  arrival.kind === 'closed-loop' || arrival.kind === 'turns'

interface Primary {
  readonly atMs: number
  /** The earliest time at which any schedule gets the call accepted; Infinity for never. */
  readonly releasedMs: number
  /** The call's cost under each rule. */
  readonly units: ReadonlyArray<number>
  readonly inputTokens: number
}

/** The bound of a scenario at its seed. When primaries follow each other, the bound on waits is 0. */
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

/** The least total waiting time of primaries until the end, and the number that still wait then. */
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
    // No call arrives within the interval, so the best number at its end is the best for the whole interval.
    unserved = waiting.least(fromMs, toMs)
    sumMs += unserved * (toMs - fromMs)
  }
  return { sumMs, unserved }
}

class Waiting {
  readonly #byRelease: ReadonlyArray<Primary>
  readonly #byArrival: ReadonlyArray<Primary>
  readonly #rules: ReadonlyArray<Relaxation>
  /** By rule and primary, in the order of release: the cost of all primaries before it. */
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

  /** The least number of primaries that came by `fromMs` and still wait just before `toMs`. */
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
      // A longer interval has more room, so all the calls before fit as well.
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

/**
 * The most input tokens that the rule accepts within the duration; Infinity when it does not count tokens.
 */
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
