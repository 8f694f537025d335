/** Request bodies: held whole, since a call may have to be sent again, and counted from their first byte on. */
import type { IncomingMessage } from 'node:http'

/** How much all bodies of a gateway take together. */
export class HeldBytes {
  readonly limit: number
  #bytes = 0

  constructor(limit: number) {
    this.limit = limit
  }

  get bytes(): number {
    return this.#bytes
  }

  /** False, and nothing is counted, when there is no room. */
  take(bytes: number): boolean {
    if (this.#bytes + bytes > this.limit) return false
    this.#bytes += bytes
    return true
  }

  drop(bytes: number): void {
    this.#bytes -= bytes
  }
}

/** A body that is here in full. It counts until it is released. */
export class HeldBody {
  readonly buffer: Buffer
  readonly #held: HeldBytes
  #isReleased = false

  constructor(buffer: Buffer, held: HeldBytes) {
    this.buffer = buffer
    this.#held = held
  }

  /** It is not needed any more. Once counts, however often it is said. */
  release(): void {
    if (this.#isReleased) return
    this.#isReleased = true
    this.#held.drop(this.buffer.byteLength)
  }
}

/**
 * Calls back once with the body, with `too-large`, or with `no-room` as soon as all bodies together
 * are too much; not at all when the client goes away before. What is not kept is read to its end: a
 * client that is still sending would else see a broken connection instead of the answer.
 */
export const readBody = (
  request: IncomingMessage,
  limitBytes: number,
  held: HeldBytes,
  done: (body: HeldBody | 'too-large' | 'no-room') => void,
): void => {
  let chunks: Array<Buffer> | null = []
  let bytes = 0
  const letGo = (): void => {
    if (chunks === null) return
    chunks = null
    held.drop(bytes)
  }
  request.on('data', (chunk: Buffer) => {
    if (chunks === null) return
    if (bytes + chunk.length > limitBytes) {
      letGo()
      done('too-large')
    } else if (held.take(chunk.length)) {
      bytes += chunk.length
      chunks.push(chunk)
    } else {
      letGo()
      done('no-room')
    }
  })
  request.on('end', () => {
    if (chunks === null) return
    const whole = chunks.length === 1 ? (chunks[0] as Buffer) : Buffer.concat(chunks)
    // It is the body's to release from now on.
    chunks = null
    done(new HeldBody(whole, held))
  })
  request.on('close', letGo)
}

/** What calls itself a form or a recording. */
export const isUpload = ({ headers }: IncomingMessage): boolean =>
  /^\s*(?:multipart|audio|image|video)\//i.test(headers['content-type'] ?? '')
