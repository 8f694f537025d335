/**
 * The incident behind this project: nine workers never stop sending background calls of 50-70k tokens, and a
 * conversation call of 181k comes to a provider that allows 210k a minute.
 */
import { makeProvider } from '../emulator/index.ts'
import { seededRandom } from './random.ts'
import { Timeline } from './timeline.ts'
import { type CallRecord, type Scheduler, World } from './world.ts'

export interface IncidentOptions {
  readonly seed: number
  /** When primaries come, milliseconds from the start. */
  readonly primariesAtMs: ReadonlyArray<number>
  readonly scheduler: (world: World) => Scheduler
}

export interface IncidentSummary {
  readonly primaries: ReadonlyArray<CallRecord>
  readonly auxiliariesServed: number
  readonly auxiliaryTokens: number
  readonly auxiliaryRefusals: number
}

export const inputTokensPerMinute = 210_000
const workers = 9
const residences = 3

/** The incident under one scheduler, ready to run. `summary` can be called at any moment. */
export const startIncident = ({ seed, primariesAtMs, scheduler }: IncidentOptions) => {
  const timeline = new Timeline(1_700_000_000_000)
  const startMs = timeline.now()
  const provider = makeProvider({
    rules: [{ rule: 'token-bucket', inputTokensPerMinute, states: 'none' }],
    latency: { firstTokenMs: 1_500, perOutputTokenMs: 20 },
    seed,
  })
  const world = new World(timeline, provider)
  const random = seededRandom(seed)
  const lanes = scheduler(world)
  let calls = 0
  const work = (worker: number): void => {
    const inputTokens = 50_000 + Math.floor(random() * 20_000)
    const principal = `residence-${worker % residences}`
    const lane = 'auxiliary' as const
    const call = {
      id: `compression-${calls++}`,
      lane,
      priorityClass: 'background_ingestion' as const,
      principal,
      inputTokens,
      outputTokens: 200,
    }
    world.submit(lanes, call, () => timeline.after(100, () => work(worker)))
  }
  for (let worker = 0; worker < workers; worker += 1) work(worker)
  primariesAtMs.forEach((atMs, index) => {
    const call = {
      id: `conversation-${index}`,
      lane: 'primary' as const,
      priorityClass: 'interactive' as const,
      principal: 'residence-0',
      inputTokens: 181_000,
      outputTokens: 400,
    }
    timeline.at(startMs + atMs, () => world.submit(lanes, call))
  })
  return { timeline, startMs, world, summary: () => summarize(world) }
}

const summarize = (world: World): IncidentSummary => {
  const records = [...world.records.values()]
  const auxiliaries = records.filter(({ call }) => call.lane === 'auxiliary')
  const served = auxiliaries.filter(({ acceptedAtMs }) => acceptedAtMs !== null)
  return {
    primaries: records.filter(({ call }) => call.lane === 'primary'),
    auxiliariesServed: served.length,
    auxiliaryTokens: served.reduce((sum, { call }) => sum + call.inputTokens, 0),
    auxiliaryRefusals: auxiliaries.reduce((sum, { refusals }) => sum + refusals, 0),
  }
}
