/**
 * Refusals that were thrown into an SDK. It takes what a `fetch` throws for a broken connection and
 * sends the request again by itself; the retry gets the same error, and no new call.
 */
import { createHash } from 'node:crypto'
import type { AdmissionError } from '../host/errors.ts'
import type { AskedRequest } from './asked-request.ts'

const mostKept = 256

const keyOf = ({ method, url, body, headers }: AskedRequest): string =>
  createHash('sha256')
    .update(`${method} ${url.href}\n${headers.get('idempotency-key') ?? ''}\n`)
    .update(body ?? '')
    .digest('base64')

export class ThrownRefusals {
  readonly #kept = new Map<string, AdmissionError>()

  /** Keeps it for the SDK's retries, and answers it. */
  keep(asked: AskedRequest, error: AdmissionError): AdmissionError {
    const key = keyOf(asked)
    this.#kept.delete(key)
    this.#kept.set(key, error)
    const [oldest] = this.#kept.keys()
    if (this.#kept.size > mostKept && oldest !== undefined) this.#kept.delete(oldest)
    return error
  }

  /** What the same request was refused with; null when it was not, or too long ago. */
  of(asked: AskedRequest): AdmissionError | null {
    return this.#kept.get(keyOf(asked)) ?? null
  }
}
