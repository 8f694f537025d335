/** The bodies of POSTs, read as far as the door needs them. */
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Clock } from '../../clock.ts'
import { type ArrivalPorts, ArrivingBody, wholeUploadBytes } from '../passage/arriving-body.ts'
import { type HeldBody, type HeldBytes, isUpload, readBody } from '../passage/body.ts'
import { type Coding, codingsIn, knownCodings } from '../passage/codings.ts'
import { decodeBody } from '../passage/decoded-body.ts'
import type { Problem } from '../problem/problem.ts'
import { damagedBody, tooLarge, unfoldsTooFar, unknownCoding } from '../problem/request-problems.ts'
import { modelAsked } from '../routing/route-table.ts'
import type { Arrival, AskedBody } from './asking.ts'
import type { EntranceGuard } from './guarded.ts'

/** Why a body cannot be had: a problem, with fields of its own, or no room beside the other bodies. */
export type NoBody =
  | { readonly problem: Problem; readonly fields?: Readonly<Record<string, string>> }
  | 'no-room'

/** What a refused coding is answered with (RFC 9110 section 15.5.16). */
const acceptedCodings = { 'accept-encoding': knownCodings.join(', ') }

export interface BodiesPorts {
  readonly held: HeldBytes
  readonly limitBytes: number
  readonly clock: Clock
  readonly writeStallMs: number
  readonly entrance: EntranceGuard
}

type Heard = (body: AskedBody | NoBody) => void

export class Bodies {
  readonly #ports: BodiesPorts

  constructor(ports: BodiesPorts) {
    this.#ports = ports
  }

  /**
   * Calls back once: with the whole body, or with the beginning of an upload whose model is known; not at
   * all when the client goes away before.
   */
  read(arrival: Arrival, heard: Heard): void {
    const { request, response, found } = arrival
    const encoding = request.headers['content-encoding'] ?? ''
    const codings = codingsIn(encoding)
    if (codings === null) return heard({ problem: unknownCoding(encoding), fields: acceptedCodings })
    const isStreamed = codings.length === 0 && (isUpload(request) || found.row.estimate === 'media')
    if (isStreamed && found.row.kind === 'generating') return this.#readUpload(arrival, heard)
    const { limitBytes, held } = this.#ports
    readBody(request, limitBytes, held, (body) => {
      if (body === 'too-large') heard({ problem: tooLarge(limitBytes) })
      else if (body === 'no-room') heard('no-room')
      else this.#decode(request, response, body, codings, heard)
    })
  }

  /** A small one is held whole. Of a larger one the model is enough, which most clients write first. */
  #readUpload({ request, response, route, found }: Arrival, heard: Heard): void {
    const { held, limitBytes, clock, writeStallMs, entrance } = this.#ports
    const ports: ArrivalPorts = { limitBytes, held, clock, stallMs: writeStallMs }
    const body = new ArrivingBody(request, ports)
    const contentType = request.headers['content-type'] ?? ''
    const isKnown = (): boolean =>
      modelAsked({ found, query: route.query, contentType, body: body.bytes }).from !== null
    // A long body is looked at again when it has doubled, so that looking costs as much as reading.
    let lookAtBytes = wholeUploadBytes
    const done = (answer: () => AskedBody | NoBody): void => {
      request.off('data', look).off('end', end)
      heard(answer())
    }
    const refuse = (why: NoBody): NoBody => {
      body.release()
      return why
    }
    const look = (): void => {
      if (!body.isFull && body.arrivedBytes < lookAtBytes) return
      lookAtBytes = body.arrivedBytes * 2
      entrance.request(response, () => {
        if (isKnown()) done(() => ({ held: body, plain: body.bytes }))
        else if (body.isFull)
          done(() => refuse(body.arrivedBytes > limitBytes ? { problem: tooLarge(limitBytes) } : 'no-room'))
      })
    }
    const end = (): void =>
      done(() => {
        const whole = body.toHeld()
        return { held: whole, plain: whole.buffer }
      })
    request.on('data', look).on('end', end)
    response.once('close', () => body.release())
  }

  /** An encoded body is looked into by a decoded copy, and passed on as it came. */
  #decode(
    request: IncomingMessage,
    response: ServerResponse,
    body: HeldBody,
    codings: ReadonlyArray<Coding>,
    heard: Heard,
  ): void {
    // Whatever becomes of it, the body is not kept beyond its exchange.
    response.once('close', () => body.release())
    if (response.destroyed) return body.release()
    if (codings.length === 0 || body.buffer.length === 0) return heard({ held: body, plain: body.buffer })
    const { limitBytes, held } = this.#ports
    decodeBody(body.buffer, codings, { limitBytes, held }, (decoded) => {
      if (typeof decoded !== 'string') {
        if (!response.destroyed) heard({ held: body, plain: decoded.buffer })
        return decoded.release()
      }
      body.release()
      if (decoded === 'no-room') heard('no-room')
      else if (decoded === 'too-large') heard({ problem: unfoldsTooFar(limitBytes) })
      else heard({ problem: damagedBody(request.headers['content-encoding'] ?? '') })
    })
  }
}
