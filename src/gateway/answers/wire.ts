/** The one thing that the gateway says inside a provider's stream: that it ends early, in that wire's own words. */

/** How an upstream speaks; `other` has no known error event. */
export const wires = ['anthropic', 'openai', 'gemini', 'other'] as const
export type Wire = (typeof wires)[number]

/**
 * An overload, as the provider itself would say it in the middle of a stream: clients know that
 * they may try again. Null where the wire has no such event.
 */
export const overloadEvent = (wire: Wire, path: string, message: string): string | null => {
  switch (wire) {
    case 'anthropic':
      return named('error', { type: 'error', error: { details: null, type: 'overloaded_error', message } })
    case 'openai': {
      const error = {
        message,
        type: 'service_unavailable_error',
        param: null,
        code: 'server_is_overloaded',
      }
      return /\/responses$/.test(path)
        ? named('error', { ...error, type: 'error', error })
        : `data: ${JSON.stringify({ error })}\n\n`
    }
    case 'gemini':
      return `data: ${JSON.stringify({ error: { code: 503, message, status: 'UNAVAILABLE' } })}\n\n`
    case 'other':
      return null
  }
}

const named = (event: string, data: object): string => `event: ${event}\ndata: ${JSON.stringify(data)}\n\n`

/** Knows, of bytes that pass, whether a new event may begin where they end. */
export class EventBoundary {
  /** The last four bytes, the newest lowest. */
  #tail = 0x0a0a

  push(chunk: Buffer): void {
    for (let at = Math.max(0, chunk.length - 4); at < chunk.length; at += 1) {
      this.#tail = ((this.#tail << 8) | (chunk[at] as number)) >>> 0
    }
  }

  /** Before the first byte, or after a blank line. */
  get open(): boolean {
    const two = this.#tail & 0xffff
    return two === 0x0a0a || two === 0x0d0d || this.#tail === 0x0d0a0d0a
  }
}
