/** The provider's side of a call: each dispatch, and how its answer settles the permit and reaches the client. */
import type { Evidence, Usage } from '../../../machines/index.ts'
import type { BodyReading } from '../answers/body-reading.ts'
import { refusesKey } from '../identity/scopes.ts'
import type { AnswerHead, TransportFailure } from '../passage/transport.ts'
import { codeOf, notAStream, unreachable } from '../problem/call-problems.ts'
import { type AskedCall, settledEstimate } from './asked-call.ts'
import type { AttemptEvents, ProviderRefusal } from './attempt.ts'
import type { CallPorts } from './call-ports.ts'
import type { ClientSide } from './client-side.ts'
import { Dispatch } from './dispatch.ts'
import type { Place } from './place.ts'
import { neverSent, passed, said } from './settlements.ts'

/** How often a request may fail to leave this machine before its client is told. */
const mostUnsent = 3

/** What the call does when a dispatch is over. */
export interface DispatchOutcomes {
  /** The client has its answer. */
  readonly answered: () => void
  /** The call is back in its place, with a refusal behind it. */
  readonly waitsAgain: () => void
}

export class ProviderSide implements AttemptEvents {
  readonly dispatch: Dispatch
  readonly #ports: CallPorts
  readonly #place: Place
  readonly #client: ClientSide
  readonly #outcomes: DispatchOutcomes
  #refusal: ProviderRefusal | null = null
  #isConcluded = false
  #unsent = 0

  constructor(ports: CallPorts, place: Place, client: ClientSide, outcomes: DispatchOutcomes) {
    this.#ports = ports
    this.#place = place
    this.#client = client
    this.#outcomes = outcomes
    this.dispatch = new Dispatch(ports, this)
  }

  get #asked(): AskedCall {
    return this.#client.asked
  }

  /** The provider's last refusal of this call; null while there was none. */
  get refusal(): ProviderRefusal | null {
    return this.#refusal
  }

  /** The provider is done with the call, and it is settled; its last bytes may still be on their way. */
  get isConcluded(): boolean {
    return this.#isConcluded
  }

  send(): void {
    this.dispatch.send(this.#asked, this.#place.call.id, this.#client.answer.response)
  }

  headSeen(head: AnswerHead): void {
    const { runner, upstream } = this.#asked
    const { limits, clock, scopes } = this.#ports
    if (!refusesKey(head.status)) scopes.proven(runner.name)
    runner.learn(limits.read(runner.name, upstream.provider, head, clock.now()))
  }

  interim(head: AnswerHead): void {
    this.#client.answer.interim(head)
  }

  accepted(head: AnswerHead): boolean {
    if (!this.#client.head(head)) return this.#cannotFollow()
    this.#place.accepted()
    // From here on nothing can be taken back.
    if (this.dispatch.isSent) this.#client.dropBody()
    return true
  }

  /** What is a refusal for want of capacity goes back to its place; all else is the client's. */
  refused(refusal: ProviderRefusal, evidence: Evidence | null): void {
    const { scopes, counters, waitAnswers } = this.#ports
    const { name } = this.#asked.runner
    // Nothing left for the key, for example: that is worth remembering.
    if (evidence !== null) scopes.proven(name)
    if (evidence !== null && evidence.retryAfterMs !== null) waitAnswers.keep(name, refusal)
    this.dispatch.stop()
    if (evidence === null) this.#place.settle({ outcome: 'failed' })
    else if (!this.#client.isRepeatable) this.#place.end({ outcome: 'throttled', evidence })
    else if (this.#place.settle({ outcome: 'throttled', evidence }) === 'waiting') {
      counters.absorbedRefusals += 1
      this.#refusal = refusal
      this.dispatch.forget()
      return this.#outcomes.waitsAgain()
    }
    this.#client.passOn(refusal)
    this.#outcomes.answered()
  }

  refusedAtLength(head: AnswerHead, evidence: Evidence | null): boolean {
    this.#place.settle({ outcome: 'failed', ...(evidence === null ? {} : { evidence }) })
    return this.#client.head(head) || this.#cannotFollow()
  }

  /** The client has the head of an event stream, and the provider answers otherwise. */
  #cannotFollow(): false {
    this.#ports.counters.upstreamFailures += 1
    this.dispatch.stop()
    this.#place.end({ outcome: 'failed' })
    this.#client.problem(notAStream(this.#asked.upstream.name))
    this.#outcomes.answered()
    return false
  }

  /** The answer itself says that it is over: the place is free, whatever the connection does. */
  concluded(reading: BodyReading): void {
    if (!this.#place.hasPermit) return
    this.#isConcluded = true
    this.#settle(reading)
  }

  blocked(): void {
    this.#client.answer.blocked()
  }

  ended(reading: BodyReading): void {
    this.#client.answer.written()
    if (this.dispatch.isUnread) this.#ports.counters.unreadAnswers += 1
    if (this.#place.hasPermit) this.#settle(reading)
    this.#outcomes.answered()
  }

  #settle(reading: BodyReading): void {
    const { counters } = this.#ports
    const settlement = passed(reading)
    if (reading.evidence !== null) counters.streamErrors += 1
    if (settlement.cause === 'truncated') counters.truncatedAnswers += 1
    // Its client has the beginning of the answer, which cannot be taken back.
    this.#place.end(settlement)
    if (settlement.outcome === 'completed') this.#learn(reading.usage)
  }

  #learn(usage: Usage | null): void {
    if (usage === null) return
    this.#ports.estimator.learn(settledEstimate(this.#asked), usage)
  }

  failed({ error, neverSent: isUnsent }: TransportFailure): void {
    const { answer } = this.#client
    if (this.#isConcluded) {
      // The client has all that there was.
      answer.breakOff('')
      return this.#outcomes.answered()
    }
    if (isUnsent) return this.#neverSent(error)
    this.#place.settle({ outcome: 'failed', ...said(this.dispatch.reading?.usage) })
    this.#unreachable(error)
  }

  /** Nothing of it can have reached the provider: back to its place, as after a refusal, some few times. */
  #neverSent(error: Error): void {
    this.#ports.counters.neverSent += 1
    this.#unsent += 1
    if (this.#unsent >= mostUnsent || !this.#client.isRepeatable)
      this.#place.end({ outcome: 'failed', cause: 'never-sent' })
    else if (this.#place.settle(neverSent) === 'waiting') return this.dispatch.forget()
    this.#unreachable(error)
  }

  #unreachable(error: Error): void {
    this.#ports.counters.upstreamFailures += 1
    // Cut short by the provider, so cut short for the client: an end would make it look complete.
    if (this.#client.answer.begun) this.#client.answer.breakOff(null)
    else this.#client.problem(unreachable(this.#asked.upstream.name, codeOf(error)))
    this.#outcomes.answered()
  }
}
