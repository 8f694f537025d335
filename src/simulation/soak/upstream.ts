/** The emulator's provider core on the simulation's time, as a client's SDK would meet it. */

import { type Accepted, makeProvider, type Provider } from '../../emulator/provider.ts'
import type { Refusal } from '../../emulator/rules/rule.ts'
import { anthropicVendor } from '../../emulator/wire/anthropic-vendor.ts'
import type { Permit } from '../../host/permit.ts'
import { type Draw, drawFrom } from './draw.ts'
import { type Ledger, secret } from './ledger.ts'
import type { Life, Machine } from './machine.ts'
import type { ScopePlan } from './plan.ts'

interface Asked {
  readonly id: string
  readonly lane: string
  readonly inputTokens: number
  readonly outputTokens: number
}

interface Flight {
  readonly life: Life
  readonly stop: () => void
}

/** A broken connection as a client sees it. */
const disconnected = (): Error =>
  Object.assign(new Error(`read ECONNRESET ${secret}`), { code: 'ECONNRESET' })

export class Upstream {
  readonly provider: Provider
  readonly #machine: Machine
  readonly #ledger: Ledger
  readonly #plan: ScopePlan
  readonly #scope: string
  readonly #draw: Draw
  readonly #flights = new Set<Flight>()

  constructor(seed: number, plan: ScopePlan, scope: string, machine: Machine, ledger: Ledger) {
    this.provider = makeProvider({ rules: plan.rules, latency: plan.latency, seed, logLimit: 100_000 })
    this.#plan = plan
    this.#scope = scope
    this.#machine = machine
    this.#ledger = ledger
    this.#draw = drawFrom(seed, `upstream ${scope}`)
  }

  /** Sends a call under `permit`. Resolves and rejects as the official SDK would. */
  send(asked: Asked, permit: Permit, life: Life): Promise<unknown> {
    return new Promise((resolve, reject) => {
      // A dead process sends nothing.
      if (!life.alive) return
      const { timeline } = this.#machine
      this.#ledger.dispatched(this.#scope, asked.id)
      const call = { atMs: timeline.now(), callId: asked.id, ...asked }
      const overloaded = this.#draw.odds(this.#plan.overloads)
      const begun = overloaded ? this.provider.refuse(call, 'overloaded') : this.provider.begin(call)
      this.#ledger.trace(`${timeline.now()} ${asked.id} ${begun.accepted ? 'accepted' : begun.refusal.kind}`)
      if (begun.accepted) this.#fly(asked, begun, permit, life, { resolve, reject })
      else
        this.#machine.after(
          this.#draw.whole(0, 40),
          () => life.alive && reject(this.#refusalOf(begun.refusal)),
        )
    })
  }

  /** The connections of a process that died: some break at once, some run to their end without a reader. */
  lost(life: Life): void {
    for (const flight of [...this.#flights]) if (flight.life === life && this.#draw.odds(0.5)) flight.stop()
  }

  #fly(
    asked: Asked,
    { dispatch, firstTokenAtMs, endsAtMs }: Accepted,
    permit: Permit,
    life: Life,
    { resolve, reject }: { resolve: (answer: unknown) => void; reject: (error: unknown) => void },
  ): void {
    const { timeline } = this.#machine
    const breaksAtMs = this.#draw.odds(this.#plan.disconnects)
      ? this.#draw.whole(this.#machine.timeline.now(), Math.ceil(endsAtMs))
      : Number.POSITIVE_INFINITY
    const timers: Array<() => void> = []
    const at = (atMs: number, fn: () => void) => timers.push(timeline.at(Math.ceil(atMs), fn))
    const over = () => {
      for (const cancel of timers) cancel()
      this.#flights.delete(flight)
    }
    const stop = () => {
      over()
      this.provider.cancel({ dispatch, atMs: timeline.now() })
    }
    const flight: Flight = { life, stop }
    this.#flights.add(flight)
    if (firstTokenAtMs < breaksAtMs) at(firstTokenAtMs, () => life.alive && permit.accepted())
    if (breaksAtMs < endsAtMs) {
      at(breaksAtMs, () => {
        stop()
        if (life.alive) reject(disconnected())
      })
    } else {
      at(endsAtMs, () => {
        over()
        this.provider.finish({ dispatch, atMs: timeline.now() })
        if (life.alive) resolve(answerOf(asked))
      })
    }
    this.#obey(permit, () => {
      if (!this.#flights.has(flight) || !life.alive) return
      stop()
      reject(permit.signal.reason)
    })
  }

  /** Most holders stop when they are asked to; some are slow, a few never stop. */
  #obey(permit: Permit, stop: () => void): void {
    const stubborn = this.#draw.odds(0.05)
    const delayMs = this.#draw.of([0, 0, 10, 3_000])
    const asked = () => {
      if (!stubborn) this.#machine.after(delayMs, stop)
    }
    if (permit.signal.aborted) asked()
    else permit.signal.addEventListener('abort', asked, { once: true })
  }

  #refusalOf(refusal: Refusal): Error {
    const answer = anthropicVendor.refused(refusal, `model ${secret}`, 'req_1', this.#machine.timeline.now())
    const { status, headers, body } = answer
    return Object.assign(new Error(`${status} ${secret}`), { status, headers, error: body })
  }
}

const answerOf = ({ inputTokens, outputTokens }: Asked) => ({
  content: [{ type: 'text', text: `completion ${secret}` }],
  usage: { input_tokens: inputTokens, output_tokens: outputTokens },
})
