/**
 * Priority queues with a bound on running calls: models of p-queue and of Bottleneck as people put them
 * before an LLM client. The libraries are not dependencies of this package. Tests run the same traffic
 * through them and require the same dispatches from these models.
 */
import { sdkRetries } from '../../schedulers.ts'
import type { SimulatedCall } from '../../world.ts'
import { type Contender, capacityOf, priorityRankOf } from '../ground.ts'
import { patientRetries, sendRetrying } from './retrying.ts'

/** First come, first served within a priority; the lowest rank first. */
export class PriorityLine {
  readonly #bands = new Map<number, { calls: SimulatedCall[]; head: number }>()

  push(call: SimulatedCall): void {
    const rank = priorityRankOf(call)
    const band = this.#bands.get(rank)
    if (band === undefined) this.#bands.set(rank, { calls: [call], head: 0 })
    else band.calls.push(call)
  }

  /** The next result of `shift`, without removing it. */
  peek(): SimulatedCall | null {
    if (this.#bands.size === 0) return null
    const band = this.#bands.get(Math.min(...this.#bands.keys()))!
    return band.calls[band.head]!
  }

  shift(): SimulatedCall | null {
    for (const rank of [...this.#bands.keys()].sort((one, other) => one - other)) {
      const band = this.#bands.get(rank)!
      if (band.head < band.calls.length) {
        const call = band.calls[band.head]!
        band.head += 1
        if (band.head === band.calls.length) this.#bands.delete(rank)
        return call
      }
    }
    return null
  }
}

/**
 * `new PQueue({ concurrency })` with `add(() => client.create(), { priority })`, the client being an
 * official SDK with its default retries. A task keeps its place while its SDK waits to retry.
 */
export const pQueuePriority: Contender = ({ world, scenario, random }) => {
  const capacity = capacityOf(scenario)
  const line = new PriorityLine()
  let running = 0
  const startNext = (): void => {
    while (running < capacity) {
      const call = line.shift()
      if (call === null) return
      running += 1
      sendRetrying(world, call, {
        bounds: sdkRetries,
        random,
        jitter: 0.25,
        over: () => {
          running -= 1
          startNext()
        },
      })
    }
  }
  return {
    submit: (call) => {
      line.push(call)
      startNext()
    },
  }
}

/**
 * `new Bottleneck({ maxConcurrent })` with `schedule({ priority }, ...)` and a `failed` handler that obeys a
 * stated wait and otherwise retries 5 times at 1, 2, 4, 8, 8 s. A job keeps its place while it waits to
 * retry. Bottleneck starts a job from a timer, not in the turn that scheduled it.
 */
export const bottleneckPriority: Contender = ({ world, scenario, random }) => {
  const capacity = capacityOf(scenario)
  const line = new PriorityLine()
  let running = 0
  const startNext = (): void => {
    while (running < capacity) {
      const call = line.shift()
      if (call === null) return
      running += 1
      const over = (): void => {
        running -= 1
        startNext()
      }
      world.timeline.after(0, () =>
        sendRetrying(world, call, { bounds: patientRetries, random, jitter: 0, over }),
      )
    }
  }
  return {
    submit: (call) => {
      line.push(call)
      startNext()
    },
  }
}
