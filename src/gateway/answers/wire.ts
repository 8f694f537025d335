/** How upstreams speak, and where one event of their streams ends. */

/** How an upstream speaks; `other` has no known error event. */
export const wires = ['anthropic', 'openai', 'gemini', 'other'] as const
export type Wire = (typeof wires)[number]

/** Knows whether a new event may begin behind the bytes that have passed. */
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
