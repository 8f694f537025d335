/**
 * A call on its way through the gateway: it waits for its permit, is sent, and is answered; again
 * while the provider refuses it before it has begun, or a primary takes its place.
 */
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Evidence, Usage } from '../../../machines/index.ts'
import type { AdmissionError } from '../../host/errors.ts'
import type { Permit, Settlement } from '../../host/permit.ts'
import type { BodyReading } from '../answers/body-reading.ts'
import { overloadEvent } from '../answers/wire.ts'
import { refusesKey } from '../identity/scopes.ts'
import { type AnswerTags, ClientAnswer } from '../passage/answer.ts'
import type { Exchange, TransportFailure } from '../passage/transport.ts'
import {
  admissionProblem,
  codeOf,
  longWait,
  type Standing,
  unreachable,
  waitFields,
  whereItStood,
} from '../problem/call-problems.ts'
import { closing, fault } from '../problem/gateway-problems.ts'
import type { Problem } from '../problem/problem.ts'
import type { AskedCall } from './asked-call.ts'
import { Attempt, type AttemptEvents, type ProviderRefusal } from './attempt.ts'
import type { CallPorts } from './call-ports.ts'
import type { Absentee } from './kept-places.ts'
import { type Lookout, makeLookout } from './lookout.ts'
import { hopelessWait, waitsUntil } from './patience.ts'
import { Place, type PlaceHolder } from './place.ts'
import { isRepeatable, nextId } from './repeats.ts'
import { neverSent, passed, said } from './settlements.ts'

/** How often a request may fail to leave this machine before its client is told. */
const mostUnsent = 3

const tooLong = 'the provider asked for a longer wait than it may have'
const taken = 'the call was stopped to make room; send it again'

export class ProxiedCall implements Absentee, PlaceHolder {
  readonly #ports: CallPorts
  readonly #place: Place
  readonly #ended: (call: ProxiedCall) => void
  /** As its present client said it; without the body while there is none. */
  #asked: AskedCall
  #answer: ClientAnswer
  #isPresent = true
  #attempt: Attempt | null = null
  #exchange: Exchange | null = null
  #refusal: ProviderRefusal | null = null
  /** The provider is done with it, and it is settled; its last bytes may still be on their way. */
  #isConcluded = false
  readonly #lookout: Lookout
  #unsent = 0
  readonly #askedAtMs: number
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
    this.#asked = asked
    this.#place = new Place(asked.runner, asked.call, ports.clock, this)
    this.#answer = this.#answerOf(request, response)
    this.#lookout = makeLookout(ports.clock, ports.tickMs, () => this.#look())
    this.#askedAtMs = ports.clock.now()
    this.#ended = ended
  }

  get isPresent(): boolean {
    return this.#isPresent
  }

  get isQueued(): boolean {
    return this.#place.isQueued
  }

  start(): void {
    if (this.#hopeless !== null) return this.#tellWait()
    this.#place.ask()
    this.#lookout.start()
  }

  /** The same request came again, for the place that its first client left. What the new one said is sent, and its deadline counts. */
  takeOver(asked: AskedCall, request: IncomingMessage, response: ServerResponse): void {
    this.#asked = asked
    this.#answer = this.#answerOf(request, response)
    this.#isPresent = true
    this.#lookout.start()
    this.#place.boundBy(asked.call.deadlineAt)
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

  #answerOf(request: IncomingMessage, response: ServerResponse): ClientAnswer {
    const { clock, writeStallMs } = this.#ports
    return new ClientAnswer(request, response, {
      clock,
      writeStallMs,
      closed: () => this.#clientLeft(),
      drained: () => this.#exchange?.resume(),
      stalled: () => this.#clientStalled(),
    })
  }

  /** While no answer is here: the connection is kept from looking dead, and a wait that came up is told. */
  #look(): boolean {
    if (this.#done || this.#answer.begun || !this.#isPresent) return false
    if (this.isQueued && this.#hopeless !== null) {
      this.#place.withdraw(tooLong)
      this.#tellWait()
      return false
    }
    if (this.#ports.sendsInterim) this.#answer.processing()
    return true
  }

  /** When a wait ends that the provider imposed and that outlasts this call's own; null while there is none. */
  get #hopeless(): number | null {
    const { runner, call } = this.#asked
    return hopelessWait(
      runner.context,
      call,
      waitsUntil(runner.context, call, call.deadlineAt, this.#askedAtMs),
    )
  }

  /** At once, and not when the call's own time is over: with the provider's own answer, where it is known. */
  #tellWait(): void {
    const { clock, counters, waitAnswers } = this.#ports
    counters.toldToWait += 1
    const waitMs = Math.max(0, (this.#hopeless ?? 0) - clock.now())
    const refusal = this.#refusal ?? waitAnswers.of(this.#asked.runner.name)
    if (refusal === null) return this.#answerProblem(longWait(this.#asked.runner.name, waitMs))
    const stated = refusal.head.headers['retry-after'] !== undefined && refusal === this.#refusal
    this.#passOn(refusal, waitFields(stated ? null : waitMs))
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
    const { upstream, outbound, idField } = this.#asked
    const { clock, transport } = this.#ports
    const headers = idField === null ? outbound.headers : [...outbound.headers, idField, this.#place.call.id]
    this.#attempt = new Attempt(upstream.provider, this.#answer.response, clock, this.#events)
    this.#exchange = transport.send({ ...outbound, headers }, this.#attempt)
  }

  readonly #events: AttemptEvents = {
    headSeen: (head) => {
      const { runner, upstream } = this.#asked
      const { limits, clock, scopes } = this.#ports
      if (!refusesKey(head.status)) scopes.proven(runner.name)
      runner.learn(limits.read(runner.name, upstream.provider, head, clock.now()))
    },
    interim: (head) => this.#answer.interim(head),
    accepted: (head) => {
      this.#place.accepted()
      // From here on nothing can be taken back.
      if (this.#exchange?.isSent) this.#dropBody()
      this.#answer.head(head, this.#tags())
    },
    refused: (refusal, evidence) => this.#providerRefused(refusal, evidence),
    refusedAtLength: (head, evidence) => {
      this.#place.settle({ outcome: 'failed', ...(evidence === null ? {} : { evidence }) })
      this.#answer.head(head, this.#tags())
    },
    concluded: (reading) => this.#concluded(reading),
    blocked: () => this.#answer.blocked(),
    ended: (reading) => this.#answered(reading),
    failed: (failure) => this.#upstreamFailed(failure),
  }

  /** What is a refusal for want of capacity goes back to its place; all else is the client's. */
  #providerRefused(refusal: ProviderRefusal, evidence: Evidence | null): void {
    // Nothing left for the key, for example: that is worth remembering.
    if (evidence !== null) this.#ports.scopes.proven(this.#asked.runner.name)
    this.#exchange?.abort(new Error('what matters of the answer is here'))
    if (evidence === null) this.#place.settle({ outcome: 'failed' })
    else if (this.#place.settle({ outcome: 'throttled', evidence }) === 'waiting') {
      this.#ports.counters.absorbedRefusals += 1
      this.#refusal = refusal
      this.#exchange = null
      if (evidence.retryAfterMs !== null) this.#ports.waitAnswers.keep(this.#asked.runner.name, refusal)
      if (this.#hopeless === null) return
      if (this.#place.isAwaited) this.#place.withdraw(tooLong)
      return this.#tellWait()
    } else if (evidence.retryAfterMs !== null) {
      this.#ports.waitAnswers.keep(this.#asked.runner.name, refusal)
    }
    this.#passOn(refusal)
  }

  /** The answer itself says that it is over: the place is free, whatever the connection does. */
  #concluded({ usage }: BodyReading): void {
    if (!this.#place.hasPermit) return
    this.#isConcluded = true
    this.#place.settle({ outcome: 'completed', ...said(usage) })
    this.#learn(usage)
  }

  #answered(reading: BodyReading): void {
    const { counters } = this.#ports
    this.#answer.written()
    if (this.#attempt?.isUnread) counters.unreadAnswers += 1
    if (this.#place.hasPermit) {
      const settlement = passed(reading)
      if (reading.evidence !== null) counters.streamErrors += 1
      if (settlement.cause === 'truncated') counters.truncatedAnswers += 1
      // Its client has the beginning of the answer, which cannot be taken back.
      this.#place.end(settlement)
      if (settlement.outcome === 'completed') this.#learn(reading.usage)
    }
    this.#finish()
  }

  #learn(usage: Usage | null): void {
    if (usage === null) return
    const { bodyBytes, runner, estimatedTokens } = this.#asked
    this.#ports.estimator.learn(bodyBytes, usage, runner.name, estimatedTokens)
  }

  #upstreamFailed({ error, neverSent }: TransportFailure): void {
    if (this.#isConcluded) {
      // The client has all that there was.
      this.#answer.breakOff('')
      return this.#finish()
    }
    if (neverSent) return this.#neverSent(error)
    this.#ports.counters.upstreamFailures += 1
    this.#place.settle({ outcome: 'failed', ...said(this.#attempt?.reading?.usage) })
    if (this.#answer.begun) {
      // Cut short by the provider, so cut short for the client: an end would make it look complete.
      this.#answer.breakOff(null)
      return this.#finish()
    }
    this.#answerProblem(unreachable(this.#asked.upstream.name, codeOf(error)))
  }

  /** Nothing of it can have reached the provider: back to its place, as after a refusal, some few times. */
  #neverSent(error: Error): void {
    this.#ports.counters.neverSent += 1
    this.#unsent += 1
    if (this.#unsent >= mostUnsent) this.#place.end({ outcome: 'failed', cause: 'never-sent' })
    else if (this.#place.settle(neverSent) === 'waiting') {
      this.#exchange = null
      return
    }
    this.#ports.counters.upstreamFailures += 1
    this.#answerProblem(unreachable(this.#asked.upstream.name, codeOf(error)))
  }

  /** It is connected and does not read: neither its place nor the provider's stream is kept for it any longer. */
  #clientStalled(): void {
    if (this.#done) return
    this.#ports.counters.stalledClients += 1
    this.#stop('the client stopped reading')
    if (this.#place.hasPermit) this.#place.end({ ...this.#cancelled(), cause: 'stalled-client' })
    this.#answer.breakOff(null)
    this.#finish()
  }

  /** The scope took the permit back: for a primary, or because a time has passed. */
  #takenBack(permit: Permit): void {
    if (this.#done || !this.#place.holds(permit)) return
    const error = permit.signal.reason as AdmissionError
    this.#stop(error.message)
    if (!this.#answer.begun && error._tag !== 'DeadlineExceeded') {
      if (this.#place.settle(this.#cancelled()) === 'waiting') {
        this.#ports.counters.preemptions += 1
        this.#exchange = null
        return
      }
    } else this.#place.end(this.#cancelled())
    this.#breakOff(this.#problemOf(error))
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
    if (this.#refusal !== null && wait) return this.#passOn(this.#refusal)
    this.#answerProblem(this.#problemOf(error))
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
    if (this.#answer.isWhole) return
    if (this.#isConcluded) {
      // It had its whole answer and did not wait for the connection's end.
      this.#stop('the client has its answer')
      return this.#finish()
    }
    this.#ports.counters.clientAborts += 1
    // A call that was sent is broken off, and its retry is a new one.
    if (!this.isQueued || !this.#ports.places.keep(this, this.#asked)) return this.nobodyCame()
    this.#isPresent = false
    this.#place.boundBy(null)
    // Whoever comes brings the body.
    this.#dropBody()
  }

  /** It is not sent again. */
  #dropBody(): void {
    this.#asked.held.release()
    this.#asked = { ...this.#asked, outbound: { ...this.#asked.outbound, body: null } }
  }

  /** Ends the call for the scope, wherever it stands. */
  #letGo(why: string): void {
    if (this.#place.isAwaited) this.#place.withdraw(why)
    else {
      this.#stop(why)
      this.#place.end(this.#cancelled())
    }
  }

  #stop(why: string): void {
    this.#attempt?.stop()
    this.#exchange?.abort(new Error(why))
  }

  #cancelled(): Settlement {
    return { outcome: 'cancelled', ...said(this.#attempt?.reading?.usage) }
  }

  #passOn({ head, body }: ProviderRefusal, own: Readonly<Record<string, string>> = {}): void {
    this.#answer.whole(head, body, this.#tags(), own)
    this.#finish()
  }

  /** A problem while nothing has reached the client; after that the stream ends as an overload would end it. */
  #breakOff(problem: Problem): void {
    if (!this.#answer.begun) return this.#answerProblem(problem)
    const { upstream, outbound } = this.#asked
    const path = outbound.path.split('?', 1)[0] as string
    this.#answer.breakOff(this.#attempt?.isBetweenEvents ? overloadEvent(upstream.wire, path, taken) : null)
    this.#finish()
  }

  #answerProblem(problem: Problem): void {
    this.#answer.problem(problem, this.#tags())
    this.#finish()
  }

  #problemOf(error: AdmissionError): Problem {
    const { runner, sdkRetries } = this.#asked
    const { wait } = runner.context
    const problem = admissionProblem(error, wait === null ? 0 : wait.untilMs - this.#ports.clock.now())
    // The first try's end may not have been seen yet; a moment later it has.
    const isTooSoon = error._tag === 'DuplicateCall' && sdkRetries > 0
    if (isTooSoon) return { ...problem, retryable: true, retryAfterS: 1 }
    return problem.status === 504 ? whereItStood(problem, this.#standing) : problem
  }

  get #standing(): Standing {
    if (this.#exchange !== null) return 'cut'
    return this.#place.attempts === 0 ? 'never-sent' : 'refused'
  }

  #tags(): AnswerTags {
    return {
      callId: this.#place.call.id,
      waitedMs: this.#place.waitedMs,
      attempts: this.#place.attempts,
      warning: this.#asked.warning,
    }
  }

  #finish(): void {
    if (this.#done) return
    this.#done = true
    this.#lookout.stop()
    if (this.#answer.begun) this.#attempt?.stop()
    this.#place.boundBy(null)
    this.#ports.places.forget(this)
    this.#dropBody()
    this.#ports.scopes.ended(this.#asked.runner.name)
    this.#ended(this)
  }
}
