/**
 * A stream that outlives the function that gave it: its permit is held until its end, its break or
 * its abort. The reads are noted as they pass; the chunks are not changed.
 */
import type { Clock } from '../clock.ts'
import {
  type ChunkReader,
  makeChunkReader,
  type ResultStream,
  type StreamEnd,
} from '../evidence/result-stream.ts'
import { AdmissionError, answerUnread, whileRead } from './errors.ts'
import type { Permit } from './permit.ts'

export interface HoldPorts {
  readonly clock: Clock
  readonly provider: string
  /** How long a stream waits for its reader, milliseconds. */
  readonly unreadTimeoutMs: number
  /** Told once. */
  readonly ended: (end: StreamEnd, reader: ChunkReader) => void
}

export class HeldStream {
  readonly #permit: Permit
  readonly #ports: HoldPorts
  readonly #reader: ChunkReader
  #isOpen = true
  #runsByItself = false
  /** Chunks that its reader has asked for and not had. */
  #asked = 0
  #unread: unknown = null
  #stopWaiting: () => void = () => {}
  #close: () => void = () => {}

  constructor(permit: Permit, ports: HoldPorts) {
    this.#permit = permit
    this.#ports = ports
    this.#reader = makeChunkReader(ports.provider)
  }

  /** Returns the value that is handed out in place of the result. */
  hold<A>(result: A, found: ResultStream): A {
    this.#permit.signal.addEventListener('abort', this.#aborted, { once: true })
    const held = this.#watch(result, found)
    if (this.#permit.isAborted) this.#aborted()
    return held
  }

  #watch<A>(result: A, found: ResultStream): A {
    switch (found.kind) {
      case 'running':
        this.#runsByItself = true
        found.listen({
          chunk: (chunk) => this.#reader.push(chunk),
          ended: (end) => this.#finish(end),
        })
        return result
      case 'member': {
        const held: unknown = this.#watch((result as Record<string, unknown>)[found.name], found.stream)
        return found.stream.kind === 'readable' ? ({ ...result, [found.name]: held } as A) : result
      }
      case 'readable':
        this.#waitForReader()
        return this.#readable(found.stream) as A
      case 'iterable':
        this.#waitForReader()
        this.#iterable(found.target as Record<PropertyKey, unknown>, found.member)
        return result
    }
  }

  #iterable(target: Record<PropertyKey, unknown>, member: PropertyKey): void {
    if (member === 'next') {
      const generator = target as unknown as AsyncIterator<unknown>
      const own = {
        next: generator.next.bind(generator),
        ...(generator.return === undefined ? {} : { return: generator.return.bind(generator) }),
        ...(generator.throw === undefined ? {} : { throw: generator.throw.bind(generator) }),
      }
      const { next, return: stop, throw: fail } = this.#iterator(own as AsyncIterator<unknown>)
      for (const [name, fn] of Object.entries({ next, return: stop, throw: fail })) {
        Object.defineProperty(target, name, { value: fn, configurable: true, writable: true })
      }
      return
    }
    const open = (target[member] as () => AsyncIterator<unknown>).bind(target)
    Object.defineProperty(target, member, {
      value: () => this.#iterator(open()),
      configurable: true,
      writable: true,
    })
  }

  #iterator(source: AsyncIterator<unknown>): Required<AsyncIterableIterator<unknown>> {
    this.#close = () => void Promise.resolve(source.return?.()).catch(() => {})
    const iterator: Required<AsyncIterableIterator<unknown>> = {
      next: () => this.#step(() => source.next()),
      return: async (value) => {
        const answer = source.return === undefined ? { done: true as const, value } : source.return(value)
        this.#finish({ kind: 'dropped' })
        return answer
      },
      throw: async (error) => {
        this.#finish({ kind: 'dropped' })
        if (source.throw === undefined) throw error
        return source.throw(error)
      },
      [Symbol.asyncIterator]: () => iterator,
    }
    return iterator
  }

  #readable(stream: ReadableStream<unknown>): ReadableStream<unknown> {
    const source = stream.getReader()
    this.#close = () => void source.cancel().catch(() => {})
    return new ReadableStream<unknown>(
      {
        pull: async (controller) => {
          const { done, value } = await this.#step(() => source.read() as Promise<IteratorResult<unknown>>)
          if (done === true) controller.close()
          else controller.enqueue(value)
        },
        cancel: (reason) => {
          this.#finish({ kind: 'dropped' })
          return source.cancel(reason)
        },
      },
      { highWaterMark: 0 },
    )
  }

  async #step(read: () => Promise<IteratorResult<unknown>>): Promise<IteratorResult<unknown>> {
    if (this.#unread !== null) throw this.#unread
    this.#asked += 1
    this.#stopWaiting()
    try {
      const step = await read()
      this.#throwIfTaken()
      if (step.done === true) this.#finish({ kind: 'complete' })
      else this.#reader.push(step.value)
      return step
    } catch (error) {
      this.#finish({ kind: 'broken', error })
      this.#throwIfTaken()
      throw error
    } finally {
      this.#asked -= 1
      this.#waitForReader()
    }
  }

  /** SDKs end a stream quietly when its signal is aborted; its reader must not take that for its end. */
  #throwIfTaken(): void {
    if (!this.#permit.isAborted) return
    const reason: unknown = this.#permit.signal.reason
    if (reason instanceof AdmissionError) throw whileRead(reason)
  }

  #waitForReader(): void {
    if (!this.#isOpen || this.#asked > 0) return
    const { clock, unreadTimeoutMs } = this.#ports
    this.#stopWaiting()
    this.#stopWaiting = clock.after(unreadTimeoutMs, () => {
      const { scope, callId } = this.#permit
      this.#unread = answerUnread(scope, callId, unreadTimeoutMs)
      this.#permit.signal.removeEventListener('abort', this.#aborted)
      this.#permit.leave(this.#unread)
      this.#finish({ kind: 'dropped' })
      this.#close()
    })
  }

  readonly #aborted = (): void => {
    // One that is being read, or runs by itself, ends under the signal, and its reader hears of it there.
    if (!this.#isOpen || this.#asked > 0 || this.#runsByItself) return
    const reason: unknown = this.#permit.signal.reason
    this.#unread = reason instanceof AdmissionError ? whileRead(reason) : null
    this.#finish({ kind: 'broken', error: reason })
    this.#close()
  }

  #finish(end: StreamEnd): void {
    if (!this.#isOpen) return
    this.#isOpen = false
    this.#stopWaiting()
    this.#permit.signal.removeEventListener('abort', this.#aborted)
    this.#ports.ended(this.#reader.done && end.kind === 'dropped' ? { kind: 'complete' } : end, this.#reader)
  }
}
