/** The client's side of a call: its present request, and what is told to it, with the call's own facts. */
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { AdmissionError } from '../../host/errors.ts'
import { overloadEvent } from '../answers/error-event.ts'
import { type AnswerTags, ClientAnswer } from '../passage/answer.ts'
import type { AnswerHead } from '../passage/transport.ts'
import {
  admissionProblem,
  longWait,
  type Standing,
  waitFields,
  whereItStood,
} from '../problem/call-problems.ts'
import type { Problem } from '../problem/problem.ts'
import type { AskedCall } from './asked-call.ts'
import type { ProviderRefusal } from './attempt.ts'
import type { CallPorts } from './call-ports.ts'
import type { Place } from './place.ts'

/** What the client does by itself. */
export interface ClientEvents {
  readonly closed: () => void
  readonly drained: () => void
  readonly stalled: () => void
}

const taken = 'the call was stopped to make room; send it again'

export class ClientSide {
  readonly #ports: CallPorts
  readonly #place: Place
  readonly #events: ClientEvents
  #asked: AskedCall
  #answer: ClientAnswer

  constructor(
    ports: CallPorts,
    place: Place,
    events: ClientEvents,
    { asked, request, response }: { asked: AskedCall; request: IncomingMessage; response: ServerResponse },
  ) {
    this.#ports = ports
    this.#place = place
    this.#events = events
    this.#asked = asked
    this.#answer = this.#answerOf(request, response)
    asked.upload?.whenStalled(events.stalled)
  }

  /** As its present client said it; without the body once it is not sent again. */
  get asked(): AskedCall {
    return this.#asked
  }

  get answer(): ClientAnswer {
    return this.#answer
  }

  /** Another client came for the same call. */
  replace(asked: AskedCall, request: IncomingMessage, response: ServerResponse): void {
    this.#asked = asked
    this.#answer = this.#answerOf(request, response)
  }

  #answerOf(request: IncomingMessage, response: ServerResponse): ClientAnswer {
    const { clock, writeStallMs } = this.#ports
    const { wire } = this.#asked.upstream
    return new ClientAnswer(request, response, {
      clock,
      writeStallMs,
      wire,
      path: this.#path,
      ...this.#events,
    })
  }

  get #path(): string {
    return this.#asked.outbound.path.split('?', 1)[0] as string
  }

  /** The body is still here from its first byte on. */
  get isRepeatable(): boolean {
    return this.#asked.upload?.isRepeatable ?? true
  }

  /** The body is not sent again. */
  dropBody(): void {
    this.#asked.held.release()
    this.#asked = { ...this.#asked, outbound: { ...this.#asked.outbound, body: null } }
  }

  /** The connection is kept from looking dead, in the form that whatever carries it understands. */
  keepAlive(): void {
    if (this.#ports.keepAlive === 'informational') return this.#answer.processing()
    if (this.#asked.asksForEvents) this.#answer.comment(this.#tags())
  }

  /** False when the answer cannot follow what the client already has. */
  head(head: AnswerHead): boolean {
    return this.#answer.head(head, this.#tags())
  }

  passOn({ head, body }: ProviderRefusal, own: Readonly<Record<string, string>> = {}): void {
    this.#answer.whole(head, body, this.#tags(), own)
  }

  problem(problem: Problem): void {
    this.#answer.problem(problem, this.#tags())
  }

  /** The provider's own answer where it is known, and how long the wait is that it stated. */
  longWait(untilMs: number, refusal: ProviderRefusal | null): void {
    const { name } = this.#asked.runner
    const waitMs = Math.max(0, untilMs - this.#ports.clock.now())
    const known = refusal ?? this.#ports.waitAnswers.of(name)
    if (known === null) return this.problem(longWait(name, waitMs))
    const stated = known.head.headers['retry-after'] !== undefined && known === refusal
    this.passOn(known, waitFields(stated ? null : waitMs))
  }

  /** Ends an answer that has begun as an overload would end it, where a new event may begin. */
  overload(isBetweenEvents: boolean): void {
    const { wire } = this.#asked.upstream
    this.#answer.breakOff(isBetweenEvents ? overloadEvent(wire, this.#path, taken) : null)
  }

  /** What a refusal of the scope is over HTTP. */
  problemOf(error: AdmissionError, isUnderWay: boolean): Problem {
    const { runner, sdkRetries } = this.#asked
    const { wait } = runner.context
    const problem = admissionProblem(error, wait === null ? 0 : wait.untilMs - this.#ports.clock.now())
    // The first try's end may not have been seen yet; a moment later it has.
    const isTooSoon = error._tag === 'DuplicateCall' && sdkRetries > 0
    if (isTooSoon) return { ...problem, retryable: true, retryAfterS: 1 }
    return problem.status === 504 ? whereItStood(problem, this.#standing(isUnderWay)) : problem
  }

  #standing(isUnderWay: boolean): Standing {
    if (isUnderWay) return 'cut'
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
}
