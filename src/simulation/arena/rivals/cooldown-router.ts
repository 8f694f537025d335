/**
 * A router before one deployment, modelled on LiteLLM's with its request priorities. While the deployment is
 * healthy every call goes at once. A 429 puts it in a cooldown, for the stated wait or else 5 s; calls that
 * come meanwhile wait in a line by priority. A counter per clock minute stops using the deployment once the
 * tokens or requests of its page were used. Tokens are counted when an answer is complete. A refused call is
 * tried twice more, through the line, and then fails.
 *
 * Assumed where the documentation is silent: a single deployment is cooled too, although there is no other to
 * route to; the line is checked whenever the deployment may be used again.
 */
import type { Scheduler, SimulatedCall, World } from '../../world.ts'
import type { Contender } from '../ground.ts'
import { type ProviderPage, pageOf } from '../provider-page.ts'
import { PriorityLine } from './priority-queues.ts'

const cooldownMs = 5_000
const retries = 2
const minuteMs = 60_000

class CooldownRouter implements Scheduler {
  readonly #world: World
  readonly #page: ProviderPage
  readonly #line = new PriorityLine()
  readonly #tries = new Map<string, number>()
  #cooledUntilMs = 0
  #minute = 0
  #tokens = 0
  #requests = 0
  #wakeAtMs = Number.POSITIVE_INFINITY

  constructor(world: World, page: ProviderPage) {
    this.#world = world
    this.#page = page
  }

  submit(call: SimulatedCall): void {
    this.#line.push(call)
    this.#drain()
  }

  #opensAtMs(): number {
    const nowMs = this.#world.timeline.now()
    const minute = Math.floor(nowMs / minuteMs)
    if (minute !== this.#minute) {
      this.#minute = minute
      this.#tokens = 0
      this.#requests = 0
    }
    const { inputTokensPerMinute, requestsPerMinute } = this.#page
    const used =
      (inputTokensPerMinute !== null && this.#tokens >= inputTokensPerMinute) ||
      (requestsPerMinute !== null && this.#requests >= requestsPerMinute)
    return Math.max(this.#cooledUntilMs, used ? (minute + 1) * minuteMs : nowMs)
  }

  #drain(): void {
    const nowMs = this.#world.timeline.now()
    for (;;) {
      const opensAtMs = this.#opensAtMs()
      if (this.#line.peek() === null) return
      if (opensAtMs > nowMs) return this.#wake(opensAtMs)
      this.#send(this.#line.shift()!)
    }
  }

  #wake(atMs: number): void {
    if (atMs === this.#wakeAtMs) return
    this.#wakeAtMs = atMs
    this.#world.timeline.at(atMs, () => {
      if (this.#wakeAtMs === atMs) this.#wakeAtMs = Number.POSITIVE_INFINITY
      this.#drain()
    })
  }

  #send(call: SimulatedCall): void {
    this.#requests += 1
    this.#world.dispatch(call, {
      accepted: () => {},
      completed: () => {
        this.#tokens += call.inputTokens
        this.#tries.delete(call.id)
      },
      refused: ({ retryAfterMs, permanent }) => {
        const nowMs = this.#world.timeline.now()
        const tries = (this.#tries.get(call.id) ?? 0) + 1
        this.#tries.set(call.id, tries)
        if (permanent || tries > retries) return this.#world.end(call.id, true)
        this.#cooledUntilMs = Math.max(this.#cooledUntilMs, nowMs + (retryAfterMs ?? cooldownMs))
        this.submit(call)
      },
    })
  }
}

export const cooldownRouter: Contender = ({ world, scenario }) => new CooldownRouter(world, pageOf(scenario))
