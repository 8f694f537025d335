/** The exchange with the provider that a call has at a time: its request on the way out, its answer on the way in. */
import type { ServerResponse } from 'node:http'
import type { BodyReading } from '../answers/body-reading.ts'
import type { Exchange } from '../passage/transport.ts'
import type { AskedCall } from './asked-call.ts'
import { Attempt, type AttemptEvents } from './attempt.ts'
import type { CallPorts } from './call-ports.ts'

export class Dispatch {
  readonly #ports: Pick<CallPorts, 'clock' | 'transport'>
  readonly #events: AttemptEvents
  #attempt: Attempt | null = null
  #exchange: Exchange | null = null

  constructor(ports: Pick<CallPorts, 'clock' | 'transport'>, events: AttemptEvents) {
    this.#ports = ports
    this.#events = events
  }

  send(
    { upstream, outbound, upload, idField, hidesUsage }: AskedCall,
    callId: string,
    response: ServerResponse,
  ): void {
    const { clock, transport } = this.#ports
    const headers = idField === null ? outbound.headers : [...outbound.headers, idField, callId]
    this.#attempt = new Attempt({ provider: upstream.provider, hidesUsage }, response, clock, this.#events)
    const body = upload === null ? outbound.body : upload.open()
    this.#exchange = transport.send({ ...outbound, headers, body }, this.#attempt)
  }

  /** A request is out, and what becomes of it is not settled. */
  get isUnderWay(): boolean {
    return this.#exchange !== null
  }

  /** All of the request has been handed over. */
  get isSent(): boolean {
    return this.#exchange?.isSent ?? false
  }

  /** What the answer has told so far; null before there is a successful one. */
  get reading(): BodyReading | null {
    return this.#attempt?.reading ?? null
  }

  get isUnread(): boolean {
    return this.#attempt?.isUnread ?? false
  }

  get isBetweenEvents(): boolean {
    return this.#attempt?.isBetweenEvents ?? false
  }

  resume(): void {
    this.#exchange?.resume()
  }

  /** The provider need not go on; nothing more is heard of it. */
  stop(): void {
    this.rest()
    this.#exchange?.abort()
  }

  /** Nothing of the attempt is waited for any more; its last bytes may still come. */
  rest(): void {
    this.#attempt?.stop()
  }

  /** The call goes back to its place: the next exchange is another one. */
  forget(): void {
    this.#exchange = null
  }
}
