/**
 * Bottleneck with its own means against token limits, as its page on reservoirs advises: a limiter
 * per limit that the provider's page names, each with `reservoir` and `reservoirRefreshAmount` of
 * that limit, `reservoirRefreshInterval` of a minute, and a `weight` for every job. A model of the
 * library, held to it by the tests on the same virtual time.
 *
 * Tuned as a careful user would. A job is never given more weight than the reservoir holds, because
 * such a job blocks a limiter for ever. Calls at once are bounded by a limiter of their own, since
 * `maxConcurrent` counts weights. Jobs pass the limiters of the scarcest unit first and take a place
 * last. A `failed` handler obeys a stated wait and else retries 5 times at 1, 2, 4, 8, 8 s.
 */
import type { Timeline } from '../../timeline.ts'
import { estimateOf, type SimulatedCall } from '../../world.ts'
import type { Contender } from '../ground.ts'
import { pageOf } from '../provider-page.ts'
import type { Scenario } from '../scenario.ts'
import { PriorityLine } from './priority-queues.ts'
import { patientRetries, sendRetrying } from './retrying.ts'

export const refreshMs = 60_000

/** One limiter as it is configured; without a reservoir it only bounds the jobs at once. */
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

  /** Strictly by priority: a job that does not fit holds back all behind it. */
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
      // Bottleneck runs a job in a timer's turn.
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
