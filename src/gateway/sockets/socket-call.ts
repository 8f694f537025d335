/** One response that a client asks for on its WebSocket: held until its permit is here, settled by its last event. */
import type { AdmissionError } from '../../host/errors.ts'
import type { Disposition, Permit } from '../../host/permit.ts'
import { type AskedCall, settledEstimate } from '../calls/asked-call.ts'
import type { CallPorts } from '../calls/call-ports.ts'
import { CallWait } from '../calls/call-wait.ts'
import { Place, type PlaceHolder } from '../calls/place.ts'
import { passed } from '../calls/settlements.ts'
import type { HeldBody } from '../passage/body.ts'
import type { ResponseEnd } from './events.ts'

export interface SocketCallEvents {
  /** Its permit is here: its message goes out, again after a refusal. */
  readonly send: (call: SocketCall) => void
  readonly refused: (call: SocketCall, error: AdmissionError) => void
  /** The scope took the permit back while the response was under way. */
  readonly takenBack: (call: SocketCall, error: AdmissionError) => void
  /** The provider's stated wait, until this epoch millisecond, outlasts the call's own. */
  readonly hopeless: (call: SocketCall, untilMs: number) => void
  /** The connection may look dead while it waits. */
  readonly keepAlive: () => void
}

export class SocketCall implements PlaceHolder {
  readonly isPresent = true
  readonly asked: AskedCall
  readonly place: Place
  readonly message: HeldBody
  /** The client's own name for its message; null where it gave none. */
  readonly eventId: string | null
  /** Of the response, once the provider has begun it. */
  responseId: string | null = null
  hasBegun = false
  readonly #ports: CallPorts
  readonly #events: SocketCallEvents
  readonly #wait: CallWait
  #isOver = false

  constructor(
    ports: CallPorts,
    asked: AskedCall,
    { body, eventId }: { readonly body: HeldBody; readonly eventId: string | null },
    events: SocketCallEvents,
  ) {
    this.#ports = ports
    this.asked = asked
    this.message = body
    this.eventId = eventId
    this.#events = events
    this.place = new Place(asked.runner, asked.call, ports.clock, this)
    this.#wait = new CallWait(ports, asked, {
      keepAlive: () => {
        if (this.place.isQueued) events.keepAlive()
        return !this.#isOver
      },
      waitChanged: () => this.#tellHopeless(),
    })
  }

  get isOver(): boolean {
    return this.#isOver
  }

  /** Its message has gone out, and its response has not ended. */
  get isUnderWay(): boolean {
    return this.place.hasPermit
  }

  ask(): void {
    const untilMs = this.#wait.hopelessUntilMs
    if (untilMs !== null) return this.#events.hopeless(this, untilMs)
    this.place.ask()
    this.#wait.start(this.asked)
  }

  #tellHopeless(): void {
    const untilMs = this.#wait.hopelessUntilMs
    if (this.#isOver || untilMs === null || !this.place.isQueued) return
    this.place.withdraw('the provider asked for a longer wait than it may have')
    this.#events.hopeless(this, untilMs)
  }

  granted(permit: Permit): void {
    const takenBack = (): void => {
      if (!this.#isOver && this.place.holds(permit))
        this.#events.takenBack(this, permit.signal.reason as AdmissionError)
    }
    permit.signal.addEventListener('abort', takenBack, { once: true })
    if (permit.signal.aborted) takenBack()
    else this.#events.send(this)
  }

  refused(error: AdmissionError): void {
    if (!this.#isOver) this.#events.refused(this, error)
  }

  missed(): void {}

  /** The provider has begun the response: the message is not sent again. */
  begun(responseId: string | null): void {
    this.hasBegun = true
    this.responseId = responseId
    this.#ports.scopes.proven(this.asked.runner.name)
    this.place.accepted()
    this.message.release()
  }

  /** The last event of the response came. After `waiting` it was a refusal before the response had begun. */
  ended({ usage, evidence }: ResponseEnd): Disposition {
    const { scopes, counters, estimator } = this.#ports
    const { runner } = this.asked
    if (evidence !== null) scopes.proven(runner.name)
    const settlement = passed({ usage, evidence, truncated: false })
    if (settlement.outcome === 'throttled' && !this.hasBegun) {
      if (this.place.settle(settlement) === 'waiting') {
        counters.absorbedRefusals += 1
        // A wait that outlasts the call's own is told instead of the refusal.
        this.#tellHopeless()
        return 'waiting'
      }
    } else {
      if (evidence !== null && this.hasBegun) counters.streamErrors += 1
      this.place.end(settlement)
    }
    if (settlement.outcome === 'completed' && usage !== null)
      estimator.learn(settledEstimate(this.asked), usage)
    this.finish()
    return 'ended'
  }

  /** Ends for the scope, wherever it stands. */
  letGo(outcome: 'cancelled' | 'failed', why: string): void {
    if (this.#isOver) return
    if (this.place.isAwaited) this.place.withdraw(why)
    else this.place.end({ outcome })
    this.finish()
  }

  finish(): void {
    if (this.#isOver) return
    this.#isOver = true
    this.#wait.stop()
    this.message.release()
    this.#ports.scopes.ended(this.asked.runner.name)
  }
}
