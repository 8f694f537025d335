/** One guard around every entrance: what is thrown inside ends that request, and never the process. */
import type { ServerResponse } from 'node:http'
import type { Duplex } from 'node:stream'
import { fault } from '../problem/gateway-problems.ts'
import { sendProblem } from '../problem/problem.ts'

export class EntranceGuard {
  readonly #fault: () => void

  /** `fault` hears of every throw. What was thrown is not told: it may quote the request. */
  constructor(fault: () => void) {
    this.#fault = fault
  }

  /** For requests, and for whatever is done for one later. */
  request(response: ServerResponse, work: () => void): void {
    this.run(work, () => {
      if (response.headersSent) response.destroy()
      else sendProblem(response, fault, { connection: 'close' })
    })
  }

  /** For connections that leave HTTP: nobody but us listens to their errors any more. */
  socket(socket: Duplex, work: () => void): void {
    socket.on('error', () => {})
    this.run(work, () => socket.destroy())
  }

  /** For anything else that is called from outside. */
  run(work: () => void, thrown: () => void = () => {}): void {
    try {
      work()
    } catch {
      this.#fault()
      try {
        thrown()
      } catch {
        // The answer to a fault failed as well; it has been counted.
      }
    }
  }
}

/** An answer without `node:http`, for a socket that asked to leave it; then the connection ends. */
export const refuseUpgrade = (
  socket: Duplex,
  status: 400 | 403 | 404 | 426 | 503,
  reason: string,
  detail: string,
): void => {
  const body = JSON.stringify({ status, title: reason, detail })
  socket.end(
    [
      `HTTP/1.1 ${status} ${reason}`,
      'content-type: application/problem+json',
      `content-length: ${Buffer.byteLength(body)}`,
      'connection: close',
      ...(status === 426 ? ['upgrade: HTTP/1.1'] : []),
      '',
      body,
    ].join('\r\n'),
  )
}
