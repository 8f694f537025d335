/**
 * Refusals that were thrown into an SDK. The SDK takes an error of its `fetch` for a broken connection and
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
    // Without a body to look at, one request cannot be told from another.
    if (asked.body === null) return error
    const key = keyOf(asked)
    this.#kept.delete(key)
    this.#kept.set(key, error)
    const [oldest] = this.#kept.keys()
    if (this.#kept.size > mostKept && oldest !== undefined) this.#kept.delete(oldest)
    return error
  }

  /**
   * The refusal of the request that this one repeats for the SDK; null when it repeats none.
   * A first try is a new call, and nothing that was said of an older one counts for its retries.
   */
  of(asked: AskedRequest, sdkRetries: number): AdmissionError | null {
    if (this.#kept.size === 0) return null
    const key = keyOf(asked)
    if (sdkRetries > 0) return this.#kept.get(key) ?? null
    this.#kept.delete(key)
    return null
  }
}
