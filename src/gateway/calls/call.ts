/**
 * A call on its way through the gateway: it waits for its permit, is sent, and is answered; again
 * while the provider refuses it before it has begun, or a primary takes its place.
 */
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { AdmissionError } from '../../host/errors.ts'
import type { Permit, Settlement } from '../../host/permit.ts'
import { closing, fault } from '../problem/gateway-problems.ts'
import type { Problem } from '../problem/problem.ts'
import type { AskedCall } from './asked-call.ts'
import type { CallPorts } from './call-ports.ts'
import { CallWait } from './call-wait.ts'
import { ClientSide } from './client-side.ts'
import type { Absentee } from './kept-places.ts'
import { Place, type PlaceHolder } from './place.ts'
import { ProviderSide } from './provider-side.ts'
import { isRepeatable, nextId } from './repeats.ts'
import { said } from './settlements.ts'

const tooLong = 'the provider asked for a longer wait than it may have'

export class ProxiedCall implements Absentee, PlaceHolder {
  readonly #ports: CallPorts
  readonly #place: Place
  readonly #ended: (call: ProxiedCall) => void
  readonly #client: ClientSide
  readonly #provider: ProviderSide
  readonly #wait: CallWait
  #isPresent = true
  /** It has gone on as another call once, under an id that tells. */
  #renamed = false
  #done = false

  /** `ended` is told once, when nothing is left to do. */
  constructor(
    ports: CallPorts,
    asked: AskedCall,
    request: IncomingMessage,
    response: ServerResponse,
    ended: (call: ProxiedCall) => void,
  ) {
    this.#ports = ports
    this.#ended = ended
    this.#place = new Place(asked.runner, asked.call, ports.clock, this)
    this.#wait = new CallWait(ports, asked, {
      keepAlive: () => this.#keepAlive(),
      waitChanged: () => this.#tellHopelessWait(),
    })
    const events = {
      closed: () => this.#clientLeft(),
      drained: () => this.#provider.dispatch.resume(),
      stalled: () => this.#clientStalled(),
    }
    this.#client = new ClientSide(ports, this.#place, events, { asked, request, response })
    this.#provider = new ProviderSide(ports, this.#place, this.#client, {
      answered: () => this.#finish(),
      waitsAgain: () => this.#waitsAgain(),
    })
  }

  get #asked(): AskedCall {
    return this.#client.asked
  }

  get isPresent(): boolean {
    return this.#isPresent
  }

  get isQueued(): boolean {
    return this.#place.isQueued
  }

  start(): void {
    if (this.#wait.hopelessUntilMs !== null) return this.#tellWait()
    this.#place.ask()
    this.#wait.start(this.#asked)
  }

  /** The same request came again, for the place that its first client left. What the new one said is sent, and its deadline counts. */
  takeOver(asked: AskedCall, request: IncomingMessage, response: ServerResponse): void {
    this.#client.replace(asked, request, response)
    this.#isPresent = true
    this.#wait.start(asked)
    this.#place.boundBy(asked.call.deadlineAt)
    this.#tellHopelessWait()
  }

  nobodyCame(): void {
    this.#letGo('the client went away')
    this.#finish()
  }

  missed(): void {
    this.#finish()
  }

  /** The gateway closes: the call ends now, wherever it stands. */
  cut(): void {
    if (this.#done) return
    this.#letGo('the gateway is closing')
    this.#breakOff(closing)
  }

  /** False once an answer is here, or nobody waits for one. */
  #keepAlive(): boolean {
    if (this.#done || this.#client.answer.begun || !this.#isPresent) return false
    this.#client.keepAlive()
    return true
  }

  /** A wait came up, while the call waits, that outlasts its own. */
  #tellHopelessWait(): void {
    if (this.#done || !this.#isPresent || !this.isQueued || this.#wait.hopelessUntilMs === null) return
    this.#place.withdraw(tooLong)
    this.#tellWait()
  }

  /** The provider has refused it, maybe for longer than it may wait. */
  #waitsAgain(): void {
    if (this.#wait.hopelessUntilMs === null) return
    if (this.#place.isAwaited) this.#place.withdraw(tooLong)
    this.#tellWait()
  }

  /** At once, and not when the call's own time is over. */
  #tellWait(): void {
    this.#ports.counters.toldToWait += 1
    this.#client.longWait(this.#wait.hopelessUntilMs ?? 0, this.#provider.refusal)
    this.#finish()
  }

  /** It runs inside the host's own work, which no fault of ours may break. */
  granted(permit: Permit): void {
    try {
      this.#send(permit)
    } catch {
      this.#ports.counters.faults += 1
      this.#place.settle({ outcome: 'failed' })
      this.#breakOff(fault)
    }
  }

  #send(permit: Permit): void {
    permit.signal.addEventListener('abort', () => this.#takenBack(permit), { once: true })
    if (permit.signal.aborted) return this.#takenBack(permit)
    this.#provider.send()
  }

  /** It is connected and does not read: neither its place nor the provider's stream is kept for it any longer. */
  #clientStalled(): void {
    if (this.#done) return
    this.#ports.counters.stalledClients += 1
    this.#provider.dispatch.stop()
    if (this.#place.hasPermit) this.#place.end({ ...this.#cancelled(), cause: 'stalled-client' })
    this.#client.answer.breakOff(null)
    this.#finish()
  }

  /** The scope took the permit back: for a primary, or because a time has passed. */
  #takenBack(permit: Permit): void {
    if (this.#done || !this.#place.holds(permit)) return
    const error = permit.signal.reason as AdmissionError
    this.#provider.dispatch.stop()
    const goesBack = !this.#client.answer.begun && this.#client.isRepeatable
    if (goesBack && error._tag !== 'DeadlineExceeded') {
      if (this.#place.settle(this.#cancelled()) === 'waiting') {
        this.#ports.counters.preemptions += 1
        this.#provider.dispatch.forget()
        return
      }
    } else this.#place.end(this.#cancelled())
    this.#breakOff(this.#client.problemOf(error, this.#provider.dispatch.isUnderWay))
  }

  /** The scope refused the call, or ended its wait. */
  refused(error: AdmissionError): void {
    if (this.#done) return
    if (!this.#isPresent) return this.#finish()
    const again = !this.#renamed && (this.#isRepeated(error) || this.#hasTimeLeft(error))
    const { id } = this.#place.call
    const next = again
      ? nextId(id, Math.max(1, this.#asked.sdkRetries), (one) => this.#place.endingOf(one))
      : null
    if (next !== null) {
      this.#renamed = true
      return this.#place.ask({ ...this.#place.call, id: next, deadlineAt: this.#asked.call.deadlineAt })
    }
    const wait = error._tag === 'DeadlineExceeded' || error._tag === 'PendingTimeout'
    // It waited for the provider, so what the provider said is the answer.
    const { refusal } = this.#provider
    if (refusal !== null && wait) {
      this.#client.passOn(refusal)
      return this.#finish()
    }
    this.#answerProblem(this.#client.problemOf(error, this.#provider.dispatch.isUnderWay))
  }

  /** The same id comes again after a failure that its client saw: a new dispatch, under an id of its own. */
  #isRepeated(error: AdmissionError): boolean {
    return error._tag === 'AlreadySettled' && isRepeatable(this.#place.endingOf(this.#place.call.id))
  }

  /** The deadline was that of the client before: this one still waits, if at the end of the queue. */
  #hasTimeLeft(error: AdmissionError): boolean {
    const { deadlineAt } = this.#asked.call
    return error._tag === 'DeadlineExceeded' && (deadlineAt === null || deadlineAt > this.#ports.clock.now())
  }

  #clientLeft(): void {
    if (this.#done) return
    // It has all of the answer, of which the last part is still being read.
    if (this.#client.answer.isWhole) return
    if (this.#provider.isConcluded) {
      // It had its whole answer and did not wait for the connection's end.
      this.#provider.dispatch.stop()
      return this.#finish()
    }
    this.#ports.counters.clientAborts += 1
    // A call that was sent is broken off, and its retry is a new one.
    // Nor can a retry of an upload be told before all of it is here.
    const mayReturn = this.isQueued && this.#asked.upload === null
    if (!mayReturn || !this.#ports.places.keep(this, this.#asked)) return this.nobodyCame()
    this.#isPresent = false
    this.#place.boundBy(null)
    // The client that comes for it brings the body again.
    this.#client.dropBody()
  }

  /** Ends the call for the scope, wherever it stands. */
  #letGo(why: string): void {
    if (this.#place.isAwaited) this.#place.withdraw(why)
    else {
      this.#provider.dispatch.stop()
      this.#place.end(this.#cancelled())
    }
  }

  #cancelled(): Settlement {
    return { outcome: 'cancelled', ...said(this.#provider.dispatch.reading?.usage) }
  }

  /** A problem while nothing has reached the client; after that the stream ends as an overload would end it. */
  #breakOff(problem: Problem): void {
    if (!this.#client.answer.begun) return this.#answerProblem(problem)
    this.#client.overload(this.#provider.dispatch.isBetweenEvents)
    this.#finish()
  }

  #answerProblem(problem: Problem): void {
    this.#client.problem(problem)
    this.#finish()
  }

  #finish(): void {
    if (this.#done) return
    this.#done = true
    this.#wait.stop()
    if (this.#client.answer.begun) this.#provider.dispatch.rest()
    this.#place.boundBy(null)
    this.#ports.places.forget(this)
    this.#client.dropBody()
    this.#ports.scopes.ended(this.#asked.runner.name)
    this.#ended(this)
  }
}
