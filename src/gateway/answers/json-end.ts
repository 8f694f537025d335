/** Finds where a JSON object or array ends, in bytes that come cut anywhere. Reads nothing but quotes and brackets. */

const quote = 0x22
const backslash = 0x5c

export class JsonEnd {
  #depth = 0
  #inText = false
  /** The byte before was a backslash that escapes the next one. */
  #isEscaped = false
  #begun = false

  /** True from the chunk on that closes the first object or array. False for ever where the text is neither. */
  push(chunk: Buffer): boolean {
    let at = 0
    while (at < chunk.length && !this.#isOver) {
      if (this.#inText) at = this.#skipText(chunk, at)
      else {
        this.#take(chunk[at] as number)
        at += 1
      }
    }
    return this.#isOver
  }

  /** An object or array has begun, and its end is not here. */
  get isOpen(): boolean {
    return this.#depth > 0
  }

  get #isOver(): boolean {
    return this.#begun && this.#depth === 0
  }

  #take(byte: number): void {
    if (byte === quote) this.#inText = true
    // `{` and `[`, `}` and `]`: each pair differs in one bit from the other.
    else if ((byte | 0x20) === 0x7b) {
      this.#depth += 1
      this.#begun = true
    } else if ((byte | 0x20) === 0x7d && this.#depth > 0) this.#depth -= 1
  }

  /** Index behind the text's end, or the chunk's length when it goes on. */
  #skipText(chunk: Buffer, from: number): number {
    let at = from
    if (this.#isEscaped) {
      this.#isEscaped = false
      at += 1
    }
    for (;;) {
      const end = chunk.indexOf(quote, at)
      const last = end < 0 ? chunk.length : end
      let slashes = 0
      while (last - 1 - slashes >= at && chunk[last - 1 - slashes] === backslash) slashes += 1
      const escapes = slashes % 2 === 1
      if (end < 0) {
        this.#isEscaped = escapes
        return chunk.length
      }
      if (!escapes) {
        this.#inText = false
        return end + 1
      }
      at = end + 1
    }
  }
}
