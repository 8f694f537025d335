/** One policy over one scenario, on virtual time. */
import { type LogEntry, makeProvider, type Provider, type RuleSpec } from '../../emulator/index.ts'
import { retryingClients, sdkRetries } from '../schedulers.ts'
import { Timeline } from '../timeline.ts'
import { type CallRecord, type DispatchHooks, type SimulatedCall, World } from '../world.ts'
import type { Contender } from './ground.ts'
import type { Scenario } from './scenario.ts'
import { sequenceOf } from './size.ts'
import type { Traces } from './trace.ts'
import { startTraffic } from './traffic.ts'

const minuteMs = 60_000
/** Far above every run's dispatches, so that the provider's log drops no entry. */
const logLimit = 100_000_000
/** Number of times at which the ceiling is read for plots. */
const plotPoints = 600

/**
 * How long primaries that wait at the end may wait on, ms. Without this, a primary that came just before the
 * end would count as unserved. Closed-loop auxiliaries continue meanwhile.
 */
export const runOffMs = ({ durationMs }: Scenario): number => Math.min(durationMs, 15 * minuteMs)

/** The provider's remaining room at one time. */
export interface Room {
  readonly atMs: number
  /** Input tokens that one call could have had; Infinity when no rule limits them. */
  readonly roomTokens: number
}

export interface Run {
  readonly scenario: Scenario
  /** In the order of submission. */
  readonly records: ReadonlyArray<CallRecord>
  /** The dispatches that the provider saw, in order. */
  readonly log: ReadonlyArray<LogEntry>
  /** At the last millisecond of each minute. */
  readonly minuteEnds: ReadonlyArray<Room>
  /** Evenly over the duration, for plots. */
  readonly rooms: ReadonlyArray<Room>
}

export interface RunOptions {
  readonly traces?: Traces
  /** Receives the finished share of the duration, in [0, 1]. */
  readonly progress?: (share: number) => void
}

/** The provider's rules with its stated concurrency, which it enforces. */
export const rulesOf = ({ provider }: Scenario): ReadonlyArray<RuleSpec> =>
  provider.concurrency === null
    ? provider.rules
    : [...provider.rules, { rule: 'concurrency', maxConcurrent: provider.concurrency }]

/** The random sequences of the strangers are separate from those of the traffic. */
const strangerParts = 1_000_000

const strangerPrefix = 'stranger/'
/** Whether an entry of the log belongs to a call that no policy sees. */
export const isStranger = ({ callId }: LogEntry): boolean => callId.startsWith(strangerPrefix)

class StrangersWorld extends World {
  accepted: (call: SimulatedCall) => void = () => {}

  override dispatch(call: SimulatedCall, hooks: DispatchHooks): () => void {
    const abort = super.dispatch(call, hooks)
    if (this.records.get(call.id)!.acceptedAtMs !== null) this.accepted(call)
    return abort
  }
}

/** Traffic that no policy sees, on a separate record: its calls never count in the results. */
const startStrangers = (
  scenario: Scenario,
  traces: Traces,
  timeline: Timeline,
  provider: Provider,
  told: (call: SimulatedCall) => void,
): void => {
  const { strangers } = scenario.provider
  if (strangers.length === 0) return
  const world = new StrangersWorld(timeline, provider)
  world.accepted = told
  const clients = retryingClients(world, sdkRetries, sequenceOf(scenario.seed, -2))
  startTraffic(
    { ...scenario, traffic: strangers },
    traces,
    timeline,
    (call, ended) => {
      const own = { ...call, id: `${strangerPrefix}${call.id}` }
      world.submit(clients, own, () => ended(world.records.get(own.id)!.failed))
    },
    strangerParts,
  )
}

const providerOf = (scenario: Scenario): Provider =>
  makeProvider({
    rules: rulesOf(scenario),
    ...(scenario.provider.states === null ? {} : { states: scenario.provider.states }),
    latency: scenario.provider.latency,
    seed: scenario.seed,
    logLimit,
  })

/** Records the provider's remaining room, without changing it. */
const watchRoom = (timeline: Timeline, provider: Provider, durationMs: number) => {
  const rooms: Room[] = []
  const minuteEnds: Room[] = []
  const look = (atMs: number, into: Room[]): void => {
    timeline.at(atMs, () => into.push({ atMs, roomTokens: provider.ceiling(atMs) }))
  }
  for (let point = 0; point <= plotPoints; point += 1) {
    look(Math.floor((durationMs * point) / plotPoints), rooms)
  }
  for (let endMs = minuteMs; endMs <= durationMs; endMs += minuteMs) look(endMs - 1, minuteEnds)
  if (durationMs % minuteMs !== 0) look(durationMs - 1, minuteEnds)
  return { rooms, minuteEnds }
}

/** Runs a policy to the end of the scenario, and on until no primary waits or `runOffMs` is over. */
export const runPolicy = (scenario: Scenario, contender: Contender, options: RunOptions = {}): Run => {
  const { traces = new Map(), progress = () => {} } = options
  const timeline = new Timeline()
  const provider = providerOf(scenario)
  const world = new World(timeline, provider, scenario.provider.answers)
  const watched = watchRoom(timeline, provider, scenario.durationMs)
  const scheduler = contender({ world, scenario, random: sequenceOf(scenario.seed, -1) })
  startStrangers(scenario, traces, timeline, provider, (call) => scheduler.strangerAccepted?.(call))
  const primaries = new Set<string>()
  startTraffic(scenario, traces, timeline, (call, ended) => {
    if (call.lane === 'primary') primaries.add(call.id)
    world.submit(scheduler, call, () => ended(world.records.get(call.id)!.failed))
  })
  for (let percent = 1; percent <= 100; percent += 1) {
    timeline.runUntil((scenario.durationMs * percent) / 100)
    progress(percent / 100)
  }
  const waits = (id: string): boolean => {
    const record = world.records.get(id)!
    return record.acceptedAtMs === null && record.endedAtMs === null
  }
  const lastMs = scenario.durationMs + runOffMs(scenario)
  let waiting = [...primaries].filter(waits)
  while (waiting.length > 0 && timeline.now() < lastMs) {
    timeline.runUntil(Math.min(lastMs, timeline.now() + 1_000))
    waiting = waiting.filter(waits)
  }
  return { scenario, records: [...world.records.values()], log: provider.log(), ...watched }
}
