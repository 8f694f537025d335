/**
 * A call on its way through the gateway: it waits for its permit, is sent, and is answered; again
 * while the provider refuses it before it has begun, or a primary takes its place.
 */
import type { ServerResponse } from 'node:http'
import { HashMap } from 'effect'
import { endingOf } from '../../machines/facts.ts'
import type { Call, Evidence, Usage } from '../../machines/index.ts'
import type { AdmissionError } from '../host/errors.ts'
import type { Disposition, Permit, Settlement } from '../host/permit.ts'
import { type AnswerTags, ClientAnswer } from './answer.ts'
import type { AskedCall, CallPorts } from './asked-call.ts'
import { Attempt, type AttemptEvents, type ProviderRefusal } from './attempt.ts'
import { admissionProblem, closing, fault, type Problem, unreachable } from './problem.ts'
import type { BodyReading } from './reading.ts'
import type { Exchange } from './transport.ts'
import { overloadEvent } from './wire.ts'

/** Endings after which the client rightly sends the same id again: its SDK saw a failure. */
const repeatable: ReadonlySet<string | undefined> = new Set(['failed', 'cancelled', 'timedOut', 'throttled'])

const taken = 'the call was stopped to make room; send it again'

export class ProxiedCall {
  readonly #ports: CallPorts
  readonly #asked: AskedCall
  readonly #response: ServerResponse
  readonly #answer: ClientAnswer
  readonly #ended: (call: ProxiedCall) => void
  #call: Call
  #permit: Permit | null = null
  #attempt: Attempt | null = null
  #exchange: Exchange | null = null
  #refusal: ProviderRefusal | null = null
  #attempts = 0
  #waitedMs = 0
  /** Since when it waits for a permit, epoch milliseconds; null while it does not. */
  #waitsSinceMs: number | null = null
  #done = false

  /** `ended` is told once, when nothing is left to do. */
  constructor(
    ports: CallPorts,
    asked: AskedCall,
    response: ServerResponse,
    ended: (call: ProxiedCall) => void,
  ) {
    this.#ports = ports
    this.#asked = asked
    this.#call = asked.call
    this.#response = response
    this.#answer = new ClientAnswer(response)
    this.#ended = ended
  }

  start(): void {
    this.#response.once('close', () => this.#clientLeft())
    this.#response.on('drain', () => this.#exchange?.resume())
    this.#submit()
  }

  /** The gateway closes: the call ends now, wherever it stands. */
  cut(): void {
    if (this.#done) return
    this.#letGo('the gateway is closing')
    this.#breakOff(closing)
  }

  #submit(): void {
    this.#exchange = null
    this.#waitsSinceMs = this.#ports.clock.now()
    // The request leaves as soon as the permit is here, so both facts are written in one commit.
    this.#asked.runner.submit(this.#call, {
      dispatchAtOnce: true,
      granted: (permit) => this.#guarded(permit),
      refused: (error) => this.#refused(error),
    })
  }

  /** It runs inside the host's own work, which no fault of ours may break. */
  #guarded(permit: Permit): void {
    try {
      this.#granted(permit)
    } catch {
      this.#ports.counters.faults += 1
      this.#settle({ outcome: 'failed' })
      this.#breakOff(fault)
    }
  }

  #granted(permit: Permit): void {
    this.#countWait()
    this.#permit = permit
    this.#attempts = permit.attempt
    permit.signal.addEventListener('abort', () => this.#takenBack(permit), { once: true })
    if (permit.signal.aborted) return this.#takenBack(permit)
    const { upstream, outbound, idField } = this.#asked
    const { clock, transport } = this.#ports
    const headers = idField === null ? outbound.headers : [...outbound.headers, idField, this.#call.id]
    this.#attempt = new Attempt(upstream.provider, this.#response, () => clock.now(), this.#events)
    this.#exchange = transport.send({ ...outbound, headers }, this.#attempt)
  }

  readonly #events: AttemptEvents = {
    headSeen: (head) => {
      const { runner, upstream } = this.#asked
      const { limits, clock } = this.#ports
      runner.learn(limits.read(runner.name, upstream.provider, head, clock.now()))
    },
    accepted: (head) => {
      this.#permit?.accepted()
      this.#answer.head(head, this.#tags())
    },
    refused: (refusal, evidence) => this.#providerRefused(refusal, evidence),
    refusedAtLength: (head, evidence) => {
      this.#settle({ outcome: 'failed', ...(evidence === null ? {} : { evidence }) })
      this.#answer.head(head, this.#tags())
    },
    ended: (reading) => this.#answered(reading),
    failed: (error) => this.#upstreamFailed(error),
  }

  /** What is a refusal for want of capacity goes back to its place; all else is the client's. */
  #providerRefused(refusal: ProviderRefusal, evidence: Evidence | null): void {
    if (evidence === null) this.#settle({ outcome: 'failed' })
    else if (this.#settle({ outcome: 'throttled', evidence }) === 'waiting') {
      this.#ports.counters.absorbedRefusals += 1
      this.#refusal = refusal
      return this.#submit()
    }
    this.#passOn(refusal)
  }

  #answered({ usage, evidence }: BodyReading): void {
    if (this.#permit !== null) {
      if (evidence !== null) {
        this.#ports.counters.streamErrors += 1
        const outcome = evidence.kind === 'not-capacity' ? 'failed' : 'throttled'
        this.#settle({ outcome, evidence, ...said(usage) })
      } else {
        this.#settle({ outcome: 'completed', ...said(usage) })
        this.#learn(usage)
      }
    }
    this.#finish()
  }

  #learn(usage: Usage | null): void {
    if (usage === null) return
    const { bodyBytes, runner, estimatedTokens } = this.#asked
    this.#ports.estimator.learn(bodyBytes, usage, runner.name, estimatedTokens)
  }

  #upstreamFailed(error: Error): void {
    this.#ports.counters.upstreamFailures += 1
    this.#settle({ outcome: 'failed', ...said(this.#attempt?.reading?.usage ?? null) })
    if (this.#answer.begun) {
      // Cut short by the provider, so cut short for the client: an end would make it look complete.
      this.#answer.breakOff(null)
      return this.#finish()
    }
    const code = 'code' in error && typeof error.code === 'string' ? error.code : error.name
    this.#answerProblem(unreachable(this.#asked.upstream.name, code))
  }

  /** The scope took the permit back: for a primary, or because a time has passed. */
  #takenBack(permit: Permit): void {
    if (this.#done || this.#permit !== permit) return
    const error = permit.signal.reason as AdmissionError
    const { begun } = this.#answer
    const disposition = this.#release(error.message)
    if (disposition === 'waiting' && !begun) {
      this.#ports.counters.preemptions += 1
      return this.#submit()
    }
    if (disposition === 'waiting') this.#giveUp()
    this.#breakOff(this.#problemOf(error))
  }

  /** The scope refused the call, or ended its wait. */
  #refused(error: AdmissionError): void {
    if (this.#done) return
    this.#countWait()
    if (this.#isRepeated(error)) {
      this.#call = { ...this.#call, id: `${this.#call.id}:retry-${this.#asked.sdkRetries}` }
      return this.#submit()
    }
    const wait = error._tag === 'DeadlineExceeded' || error._tag === 'PendingTimeout'
    // It waited for the provider, so what the provider said is the answer.
    if (this.#refusal !== null && wait) return this.#passOn(this.#refusal)
    this.#answerProblem(this.#problemOf(error))
  }

  /** An SDK sends the same id again after a failure that it saw: a new dispatch, under an id of its own. */
  #isRepeated(error: AdmissionError): boolean {
    const { runner, sdkRetries, call } = this.#asked
    if (error._tag !== 'AlreadySettled' || sdkRetries === 0 || this.#call !== call) return false
    return repeatable.has(endingOf(runner.context, call.id))
  }

  #clientLeft(): void {
    if (this.#done) return
    this.#ports.counters.clientAborts += 1
    this.#letGo('the client went away')
    this.#finish()
  }

  #countWait(): void {
    if (this.#waitsSinceMs !== null) this.#waitedMs += this.#ports.clock.now() - this.#waitsSinceMs
    this.#waitsSinceMs = null
  }

  /** Ends the call for the scope, wherever it stands. */
  #letGo(why: string): void {
    if (this.#waitsSinceMs !== null) this.#asked.runner.withdraw(this.#call.id, new Error(why))
    else if (this.#release(why) === 'waiting') this.#giveUp()
  }

  /** Stops the upstream and settles as cancelled. */
  #release(why: string): Disposition {
    this.#exchange?.abort(new Error(why))
    return this.#settle({ outcome: 'cancelled', ...said(this.#attempt?.reading?.usage ?? null) })
  }

  /** Settles the present permit. `waiting` also when its place was granted again in the same breath. */
  #settle(settlement: Settlement): Disposition {
    const permit = this.#permit
    this.#permit = null
    if (permit === null || permit.settled) return 'ended'
    if (permit.settle(settlement) === 'waiting') return 'waiting'
    return HashMap.has(this.#asked.runner.context.inFlight, this.#call.id) ? 'waiting' : 'ended'
  }

  /** Nobody wants the place that the call has taken again. Asked for first, so that a permit on its way is given back. */
  #giveUp(): void {
    const { runner } = this.#asked
    const granted = (permit: Permit): void => void permit.settle({ outcome: 'cancelled' })
    runner.submit(this.#call, { dispatchAtOnce: false, granted, refused: () => {} })
    runner.withdraw(this.#call.id, new Error('nobody waits for it any more'))
  }

  #passOn({ head, body }: ProviderRefusal): void {
    this.#answer.whole(head, body, this.#tags())
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
    return isTooSoon ? { ...problem, retryable: true, retryAfterS: 1 } : problem
  }

  #tags(): AnswerTags {
    return {
      callId: this.#call.id,
      waitedMs: this.#waitedMs,
      attempts: this.#attempts,
      warning: this.#asked.warning,
    }
  }

  #finish(): void {
    if (this.#done) return
    this.#done = true
    this.#ended(this)
  }
}

const said = (usage: Usage | null): { readonly usage?: Usage } => (usage === null ? {} : { usage })
