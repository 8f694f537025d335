/**
 * Bottleneck with its own means against token limits, as its page on reservoirs advises. Each limit of the
 * provider's page has a limiter: `reservoir` and `reservoirRefreshAmount` are the limit,
 * `reservoirRefreshInterval` is a minute, and every job has a `weight`. This is a model of the library; tests
 * compare both on the same virtual time.
 *
 * Tuned as a careful user would. A job's weight never exceeds the reservoir, because such a job blocks a
 * limiter for ever. A limiter of its own bounds the calls at once, because `maxConcurrent` counts weights.
 * Jobs pass the limiters of the scarcest unit first and take a place last. A `failed` handler obeys a stated
 * wait; otherwise it retries 5 times at 1, 2, 4, 8, 8 s.
 */
import type { Timeline } from '../../timeline.ts'
import { estimateOf, type SimulatedCall } from '../../world.ts'
import type { Contender } from '../ground.ts'
import { pageOf } from '../provider-page.ts'
import type { Scenario } from '../scenario.ts'
import { PriorityLine } from './priority-queues.ts'
import { patientRetries, sendRetrying } from './retrying.ts'

export const refreshMs = 60_000

/** The configuration of one limiter; without a reservoir it only bounds the jobs at once. */
export interface LimiterSetting {
  /** Units per minute; null for no reservoir. */
  readonly reservoir: number | null
  readonly maxConcurrent: number | null
  readonly weightOf: (call: SimulatedCall) => number
}

/** The limiters in the order in which a job passes them. */
export const limitersFor = (scenario: Scenario): ReadonlyArray<LimiterSetting> => {
  const { inputTokensPerMinute, outputTokensPerMinute, requestsPerMinute } = pageOf(scenario)
  const reservoir = (
    perMinute: number | null,
    unitsOf: (call: SimulatedCall) => number,
  ): ReadonlyArray<LimiterSetting> =>
    perMinute === null
      ? []
      : [
          {
            reservoir: perMinute,
            maxConcurrent: null,
            weightOf: (call) => Math.min(perMinute, unitsOf(call)),
          },
        ]
  const { concurrency } = scenario.provider
  return [
    ...reservoir(inputTokensPerMinute, estimateOf),
    ...reservoir(outputTokensPerMinute, ({ outputTokens }) => outputTokens),
    ...reservoir(requestsPerMinute, () => 1),
    ...(concurrency === null ? [] : [{ reservoir: null, maxConcurrent: concurrency, weightOf: () => 1 }]),
  ]
}

type Job = (over: () => void) => void

class Limiter {
  readonly #timeline: Timeline
  readonly #setting: LimiterSetting
  readonly #line = new PriorityLine()
  readonly #jobs = new Map<string, Job>()
  #left: number
  #running = 0

  constructor(timeline: Timeline, setting: LimiterSetting) {
    this.#timeline = timeline
    this.#setting = setting
    this.#left = setting.reservoir ?? Number.POSITIVE_INFINITY
    if (setting.reservoir !== null) this.#refreshIn(refreshMs)
  }

  schedule(call: SimulatedCall, job: Job): void {
    this.#jobs.set(call.id, job)
    this.#line.push(call)
    this.#drain()
  }

  #refreshIn(ms: number): void {
    this.#timeline.after(ms, () => {
      this.#left = this.#setting.reservoir!
      this.#drain()
      this.#refreshIn(refreshMs)
    })
  }

  /** Strictly by priority: a job that does not fit delays all jobs behind it. */
  #drain(): void {
    for (let call = this.#line.peek(); call !== null; call = this.#line.peek()) {
      const weight = this.#setting.weightOf(call)
      const places = (this.#setting.maxConcurrent ?? Number.POSITIVE_INFINITY) - this.#running
      if (weight > Math.min(this.#left, places)) return
      this.#line.shift()
      this.#left -= weight
      this.#running += weight
      const job = this.#jobs.get(call.id)!
      this.#jobs.delete(call.id)
      // Bottleneck starts a job from a timer.
      this.#timeline.after(0, () =>
        job(() => {
          this.#running -= weight
          this.#drain()
        }),
      )
    }
  }
}

export const bottleneckReservoir: Contender = ({ world, scenario, random }) => {
  const limiters = limitersFor(scenario).map((setting) => new Limiter(world.timeline, setting))
  const pass = (call: SimulatedCall, index: number, over: () => void): void => {
    const limiter = limiters[index]
    if (limiter === undefined) {
      sendRetrying(world, call, { bounds: patientRetries, random, jitter: 0, over })
      return
    }
    limiter.schedule(call, (done) =>
      pass(call, index + 1, () => {
        done()
        over()
      }),
    )
  }
  return { submit: (call) => pass(call, 0, () => {}) }
}
