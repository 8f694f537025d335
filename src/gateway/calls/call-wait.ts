/** The wait of one call: its client's connection does not look dead meanwhile, and a wait without hope ends at once. */
import type { AskedCall } from './asked-call.ts'
import type { CallPorts } from './call-ports.ts'
import { type Lookout, makeLookout } from './lookout.ts'
import { hopelessWait, waitsUntil } from './patience.ts'
import type { PatientCall } from './stated-waits.ts'

export interface WaitEvents {
  /** The connection may look dead by now. False when the client waits no longer. */
  readonly keepAlive: () => boolean
  /** The provider's stated wait may outlast the call's own since now. */
  readonly waitChanged: () => void
}

export class CallWait implements PatientCall {
  readonly #ports: CallPorts
  readonly #events: WaitEvents
  readonly #lookout: Lookout
  readonly #askedAtMs: number
  #asked: AskedCall
  #unwatch: () => void = () => {}

  constructor(ports: CallPorts, asked: AskedCall, events: WaitEvents) {
    this.#ports = ports
    this.#asked = asked
    this.#events = events
    this.#askedAtMs = ports.clock.now()
    this.#lookout = makeLookout(ports.clock, ports.keepAliveMs, events.keepAlive)
  }

  /** Begins, or goes on for another client. */
  start(asked: AskedCall): void {
    this.stop()
    this.#asked = asked
    this.#unwatch = this.#ports.statedWaits.watch(asked.runner, this)
    if (this.#ports.keepAliveMs > 0) this.#lookout.start()
  }

  stop(): void {
    this.#unwatch()
    this.#unwatch = () => {}
    this.#lookout.stop()
  }

  get waitsUntilMs(): number {
    const { runner, call } = this.#asked
    return waitsUntil(runner.context, call, call.deadlineAt, this.#askedAtMs)
  }

  /** When a wait ends that the provider imposed and that outlasts this call's own, epoch milliseconds; null while there is none. */
  get hopelessUntilMs(): number | null {
    const { runner, call } = this.#asked
    return hopelessWait(runner.context, call, this.waitsUntilMs)
  }

  waitChanged(): void {
    this.#events.waitChanged()
  }
}
