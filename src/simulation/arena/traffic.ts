/**
 * The clients of a scenario. Their calls depend on the scenario and its seed alone: the n-th call of a worker
 * has the same size under every policy, however late it comes.
 */
import type { Timeline } from '../timeline.ts'
import type { SimulatedCall } from '../world.ts'
import type { Arrival } from './format.ts'
import type { Scenario, Stream } from './scenario.ts'
import { drawTokens, sequenceOf } from './size.ts'
import { rowsOf, type Traces } from './trace.ts'

/** Submits a call. `ended` is called once, and tells whether the client gave up. */
export type Submit = (call: SimulatedCall, ended: (failed: boolean) => void) => void

/** How long a worker waits after a failed call, ms: no client loops on an error without a pause. */
export const pauseAfterFailureMs = 1_000

/**
 * Starts every client. Calls that come by the clock stop at the scenario's duration. Auxiliary workers in a
 * closed loop continue until the timeline stops, so that primaries that still wait meet the same traffic.
 */
export const startTraffic = (
  scenario: Scenario,
  traces: Traces,
  timeline: Timeline,
  submit: Submit,
  /** Number of the first stream's random sequences. */
  firstPart = 0,
): void => {
  for (const [place, stream] of scenario.traffic.entries()) {
    const index = firstPart + place
    if (stream.arrival.kind === 'closed-loop') {
      for (let worker = 0; worker < stream.arrival.workers; worker += 1) {
        startWorker({ scenario, stream, index, worker, timeline, submit })
      }
    } else if (stream.arrival.kind === 'turns') {
      startTurns({ scenario, stream, index, timeline, submit }, stream.arrival)
    } else {
      for (const arrival of arrivalsOf(scenario, stream, index, traces)) {
        if (arrival.atMs >= scenario.durationMs) break
        timeline.at(arrival.atMs, () => submit(arrival.call, () => {}))
      }
    }
  }
}

interface Sizes {
  readonly inputTokens: number
  readonly outputTokens: number
  /** The client's estimate, as a multiple of the truth. */
  readonly believed: number
}

const callOf = (
  stream: Stream,
  id: string,
  { inputTokens, outputTokens, believed }: Sizes,
): SimulatedCall => ({
  id,
  lane: stream.lane,
  priorityClass: stream.priorityClass,
  principal: stream.principal,
  inputTokens,
  outputTokens,
  ...(believed === 1 ? {} : { estimatedTokens: Math.round(inputTokens * believed) }),
  ...(stream.deadlineMs === null ? {} : { deadlineMs: stream.deadlineMs }),
})

const drawBelief = ({ estimate }: Stream, random: () => number): number => {
  if (estimate === null) return 1
  if (estimate === 'absent') return 0
  return 'factor' in estimate ? estimate.factor : 1 + estimate.error * (2 * random() - 1)
}

const drawSizes = (stream: Stream, random: () => number): Sizes => ({
  inputTokens: drawTokens(stream.inputTokens ?? 0, random),
  outputTokens: drawTokens(stream.outputTokens ?? 0, random),
  believed: drawBelief(stream, random),
})

interface Worker {
  readonly scenario: Scenario
  readonly stream: Stream
  readonly index: number
  readonly worker: number
  readonly timeline: Timeline
  readonly submit: Submit
}

const startWorker = ({ scenario, stream, index, worker, timeline, submit }: Worker): void => {
  const random = sequenceOf(scenario.seed, index, worker)
  let made = 0
  const next = (): void => {
    const atMs = timeline.now()
    if (stream.lane === 'primary' && atMs >= scenario.durationMs) return
    const call = callOf(stream, `${index}/${worker}/${made++}`, drawSizes(stream, random))
    submit(call, (failed) => {
      // At least a millisecond between two calls: calls that take no time would stop the timeline.
      const pauseMs = failed ? pauseAfterFailureMs : timeline.now() > atMs ? 0 : 1
      timeline.after(pauseMs, next)
    })
  }
  timeline.at(0, next)
}

type TurnsArrival = Extract<Arrival, { readonly kind: 'turns' }>

/**
 * The rounds of one turn follow each other: an answer, a tool that runs, the next call with the tool's
 * result.
 */
const startTurns = (
  { scenario, stream, index, timeline, submit }: Omit<Worker, 'worker'>,
  { perMinute, rounds, toolMs, growthTokens = 0 }: TurnsArrival,
): void => {
  const between = ([least, most]: readonly [number, number], random: () => number): number =>
    least + Math.floor(random() * (most - least + 1))
  for (const [turn, startMs] of poissonTimes(
    scenario,
    perMinute,
    sequenceOf(scenario.seed, index, 1),
  ).entries()) {
    const random = sequenceOf(scenario.seed, index, 2, turn)
    const first = drawSizes(stream, random)
    const plan = Array.from({ length: between(rounds, random) }, (_, round) => ({
      ...drawSizes(stream, random),
      inputTokens: first.inputTokens + round * growthTokens,
      pauseMs: between(toolMs, random),
    }))
    const ask = (round: number): void => {
      const sizes = plan[round]
      if (sizes === undefined || timeline.now() >= scenario.durationMs) return
      submit(callOf(stream, `${index}/${turn}/${round}`, sizes), (failed) => {
        // A turn whose call was given up is over.
        if (!failed) timeline.after(sizes.pauseMs, () => ask(round + 1))
      })
    }
    timeline.at(startMs, () => ask(0))
  }
}

export interface TimedCall {
  readonly atMs: number
  readonly call: SimulatedCall
}

/** The calls of a stream that come by the clock, in their order. */
export const arrivalsOf = (
  scenario: Scenario,
  stream: Stream,
  index: number,
  traces: Traces,
): ReadonlyArray<TimedCall> => {
  const { arrival } = stream
  const random = sequenceOf(scenario.seed, index, 0)
  if (arrival.kind === 'trace') {
    const { principals = 1 } = arrival
    return rowsOf(arrival, traces).map((row, made) => {
      const own = drawSizes(stream, random)
      const sizes = {
        inputTokens: stream.inputTokens === null ? row.inputTokens : own.inputTokens,
        outputTokens: stream.outputTokens === null ? row.outputTokens : own.outputTokens,
        believed: own.believed,
      }
      const principal = principals === 1 ? stream.principal : `${stream.principal}-${(made % principals) + 1}`
      return { atMs: row.atMs, call: callOf({ ...stream, principal }, `${index}/0/${made}`, sizes) }
    })
  }
  return timesOf(scenario, stream, sequenceOf(scenario.seed, index, 1)).map((atMs, made) => ({
    atMs,
    call: callOf(stream, `${index}/0/${made}`, drawSizes(stream, random)),
  }))
}

const timesOf = (
  { durationMs }: Scenario,
  { arrival }: Stream,
  random: () => number,
): ReadonlyArray<number> => {
  if (arrival.kind === 'at') return [...arrival.atMs].sort((one, other) => one - other)
  if (arrival.kind === 'on-off') return onOffTimes(durationMs, arrival, random)
  return arrival.kind === 'poisson' ? poissonTimes({ durationMs }, arrival.perMinute, random) : []
}

type OnOffArrival = Extract<Arrival, { readonly kind: 'on-off' }>

/** The arrival process runs only in the on periods, so these periods are laid end to end. */
const onOffTimes = (
  durationMs: number,
  { perMinute, onMs, offMs, startMs = 0 }: OnOffArrival,
  random: () => number,
): ReadonlyArray<number> =>
  poissonTimes({ durationMs }, perMinute, random)
    .map((busyMs) => startMs + busyMs + Math.floor(busyMs / onMs) * offMs)
    .filter((atMs) => atMs < durationMs)

const poissonTimes = (
  { durationMs }: Pick<Scenario, 'durationMs'>,
  perMinute: number,
  random: () => number,
): ReadonlyArray<number> => {
  if (perMinute === 0) return []
  const times: number[] = []
  let atMs = 0
  for (;;) {
    atMs += (-Math.log(1 - random()) * 60_000) / perMinute
    if (atMs >= durationMs) return times
    times.push(Math.round(atMs))
  }
}
