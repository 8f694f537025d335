/**
 * A solution that a competent engineer writes in an afternoon: a client-side bucket before a priority line.
 *
 * The bucket's rate, level and burst come from response headers; else from stated ceilings and waits; else
 * they are learned from refusals (`learnt-bucket.ts`). Among primaries a smaller call that fits may pass a
 * larger one that does not. Auxiliaries leave the largest primary seen so far in the bucket. While the bucket
 * is unknown, no auxiliary goes before a waiting primary. Auxiliaries go in their order. A refusal without
 * any information starts a pause for calls of its size and larger; the pause doubles from 0.5 s to 8 s.
 *
 * `headroomTold` begins with the limits of the provider's page, and assumes a burst of one minute.
 */
import type { LimitFact } from '../../../emulator/index.ts'
import type { VisibleRefusal } from '../../answers.ts'
import { estimateOf, type Scheduler, type SimulatedCall } from '../../world.ts'
import { type Contender, type Ground, priorityRankOf } from '../ground.ts'
import { pageOf } from '../provider-page.ts'
import { LearntBucket } from './learnt-bucket.ts'

const firstPauseMs = 500
const mostPauseMs = 8_000
/** How often the line is checked while a call waits for a level that no arithmetic gives, ms. */
const lookAgainMs = 1_000
/** How long a learnt bound on calls at once stays before one more call is tried, ms. */
const placesGrowMs = 60_000

interface Pause {
  untilMs: number
  /** Calls of this size and larger wait. */
  sizeTokens: number
  doublings: number
}

class Headroom implements Scheduler {
  readonly #ground: Ground
  readonly #input: LearntBucket
  readonly #output: LearntBucket
  readonly #requests: LearntBucket
  readonly #primaries: SimulatedCall[] = []
  readonly #auxiliaries: SimulatedCall[] = []
  /** Input tokens of the largest primary seen that a bucket can hold. */
  #largestPrimary = 0
  #pause: Pause = { untilMs: 0, sizeTokens: 0, doublings: 0 }
  /** By refused call: the time until which it was told to wait. */
  readonly #notBeforeMs = new Map<string, number>()
  /** All calls wait until this time. */
  #closedUntilMs = 0
  /** Largest output of a primary's answer seen, and the output of the answers under way, tokens. */
  #largestOutput = 0
  #flyingOutput = 0
  #headersSeen = false
  #inFlight = 0
  #places: number
  #placesGrowAtMs = Number.POSITIVE_INFINITY
  #wakeAtMs = Number.POSITIVE_INFINITY

  constructor(ground: Ground, told: boolean) {
    this.#ground = ground
    const page = told ? pageOf(ground.scenario) : null
    this.#input = new LearntBucket(page?.inputTokensPerMinute ?? null)
    this.#output = new LearntBucket(page?.outputTokensPerMinute ?? null)
    this.#requests = new LearntBucket(page?.requestsPerMinute ?? null)
    this.#places = ground.scenario.provider.concurrency ?? Number.POSITIVE_INFINITY
  }

  submit(call: SimulatedCall): void {
    if (call.lane === 'primary') {
      this.#largestPrimary = Math.max(this.#largestPrimary, estimateOf(call))
      this.#largestOutput = Math.max(this.#largestOutput, call.outputTokens)
      const rank = priorityRankOf(call)
      const place = this.#primaries.findIndex((other) => priorityRankOf(other) > rank)
      this.#primaries.splice(place < 0 ? this.#primaries.length : place, 0, call)
    } else this.#auxiliaries.push(call)
    this.#drain()
  }

  get #nowMs(): number {
    return this.#ground.world.timeline.now()
  }

  #drain(): void {
    const nowMs = this.#nowMs
    if (nowMs >= this.#placesGrowAtMs) {
      this.#places += 1
      this.#placesGrowAtMs = nowMs + placesGrowMs
    }
    let wakeAtMs = Number.POSITIVE_INFINITY
    for (const line of [this.#primaries, this.#auxiliaries]) {
      for (let index = 0; index < line.length; ) {
        if (this.#inFlight >= this.#places) return this.#wake(this.#placesGrowAtMs)
        const call = line[index]!
        const goesAtMs = this.#goesAtMs(call, nowMs)
        if (goesAtMs <= nowMs) {
          line.splice(index, 1)
          this.#send(call)
          continue
        }
        wakeAtMs = Math.min(wakeAtMs, goesAtMs)
        // Auxiliaries go in their order; otherwise the large ones would never go.
        if (line === this.#auxiliaries) break
        index += 1
      }
    }
    this.#wake(wakeAtMs)
  }

  /** The time at which the call should fit, ms; never before now. */
  #goesAtMs(call: SimulatedCall, nowMs: number): number {
    const inputTokens = estimateOf(call)
    if (nowMs < this.#closedUntilMs) return this.#closedUntilMs
    const notBeforeMs = this.#notBeforeMs.get(call.id) ?? 0
    if (nowMs < notBeforeMs) return notBeforeMs
    if (nowMs < this.#pause.untilMs && inputTokens >= this.#pause.sizeTokens) return this.#pause.untilMs
    const request = this.#requests.holdsAtMs(1, nowMs)
    const outputRoom =
      call.lane === 'primary' ? 1 : this.#flyingOutput + call.outputTokens + this.#largestOutput
    const doors = Math.max(request, this.#output.holdsAtMs(outputRoom, nowMs))
    if (call.lane === 'primary') return Math.max(doors, this.#input.holdsAtMs(inputTokens, nowMs))
    if (!this.#input.known) return this.#primaries.length === 0 ? doors : nowMs + lookAgainMs
    const room = Math.min(this.#largestPrimary, Math.max(0, this.#input.burst - inputTokens))
    return Math.max(doors, this.#input.holdsAtMs(inputTokens + room, nowMs))
  }

  #wake(atMs: number): void {
    if (atMs >= this.#wakeAtMs) return
    this.#wakeAtMs = atMs
    this.#ground.world.timeline.at(Math.ceil(atMs), () => {
      if (this.#wakeAtMs !== atMs) return
      this.#wakeAtMs = Number.POSITIVE_INFINITY
      this.#drain()
    })
  }

  #send(call: SimulatedCall): void {
    const { world } = this.#ground
    if (world.isOver(call.id)) return
    const sentAtMs = this.#nowMs
    const inputTokens = estimateOf(call)
    this.#inFlight += 1
    this.#input.take(inputTokens, sentAtMs)
    this.#requests.take(1, sentAtMs)
    this.#flyingOutput += call.outputTokens
    world.dispatch(call, {
      accepted: (limits) => {
        this.#notBeforeMs.delete(call.id)
        if (inputTokens >= this.#pause.sizeTokens) this.#pause.doublings = 0
        this.#input.accepted(inputTokens, sentAtMs)
        this.#read(limits)
        this.#drain()
      },
      completed: () => {
        this.#inFlight -= 1
        this.#flyingOutput -= call.outputTokens
        // The usage gives the true number; headers have already given it.
        if (!this.#headersSeen) this.#input.take(call.inputTokens - inputTokens, this.#nowMs)
        this.#output.take(call.outputTokens, this.#nowMs)
        this.#drain()
      },
      refused: (refusal) => {
        this.#inFlight -= 1
        this.#flyingOutput -= call.outputTokens
        this.#input.giveBack(inputTokens, this.#nowMs)
        this.#requests.giveBack(1, this.#nowMs)
        this.#learn(call, refusal)
        this.#drain()
      },
    })
  }

  #read(limits: ReadonlyArray<LimitFact>): void {
    if (limits.length > 0) this.#headersSeen = true
    for (const fact of limits) {
      if (fact.dimension === 'input-tokens-per-minute') this.#input.read(fact, this.#nowMs)
      else if (fact.dimension === 'requests-per-minute') this.#requests.read(fact, this.#nowMs)
      else if (fact.dimension === 'output-tokens-per-minute') this.#output.read(fact, this.#nowMs)
      else if (fact.remaining === 0) this.#closedUntilMs = fact.resetAtMs
    }
  }

  #learn(call: SimulatedCall, refusal: VisibleRefusal): void {
    const nowMs = this.#nowMs
    const inputTokens = estimateOf(call)
    if (refusal.permanent) {
      if (inputTokens >= this.#largestPrimary) this.#largestPrimary = this.#largestWaiting()
      return this.#ground.world.end(call.id, true)
    }
    const line = call.lane === 'primary' ? this.#primaries : this.#auxiliaries
    line.unshift(call)
    if (refusal.currentLimit !== undefined) this.#input.stated(refusal.currentLimit)
    const { kind, retryAfterMs } = refusal
    // A stated wait is obeyed even if the bucket allows more: headers lag and lie.
    this.#notBeforeMs.set(call.id, nowMs + Math.max(1, retryAfterMs ?? 0))
    if (kind === 'concurrency') {
      this.#places = Math.max(1, this.#inFlight)
      this.#placesGrowAtMs = nowMs + placesGrowMs
      return
    }
    // A plain 429 counts as the most common limit.
    const ofTokens = kind === 'input-tokens-per-minute' || kind === 'unknown-rate-limit'
    const ofSize = ofTokens || kind === 'acceleration'
    if (retryAfterMs !== null) {
      if (ofSize) this.#input.waits(inputTokens, retryAfterMs, nowMs)
      else this.#closedUntilMs = Math.max(this.#closedUntilMs, nowMs + retryAfterMs)
      return
    }
    // A moving ceiling is not a bucket: the bucket learns nothing from it.
    if (ofTokens) this.#input.refused(inputTokens, nowMs)
    this.#holdBack(ofSize ? inputTokens : 0, nowMs)
  }

  #holdBack(sizeTokens: number, nowMs: number): void {
    const pause = this.#pause
    const backoffMs = Math.min(mostPauseMs, firstPauseMs * 2 ** Math.min(10, pause.doublings))
    pause.sizeTokens = nowMs < pause.untilMs ? Math.min(pause.sizeTokens, sizeTokens) : sizeTokens
    pause.doublings += 1
    pause.untilMs = nowMs + backoffMs * (1 - 0.25 * this.#ground.random())
  }

  /** The bucket keeps no room for a call that no bucket holds. */
  #largestWaiting(): number {
    return this.#primaries.reduce((most, call) => Math.max(most, estimateOf(call)), 0)
  }
}

export const headroom: Contender = (ground) => new Headroom(ground, false)
export const headroomTold: Contender = (ground) => new Headroom(ground, true)
