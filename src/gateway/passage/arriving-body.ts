/**
 * The body of an upload that is sent on while it still arrives. What has arrived is kept while there is
 * room, so that a refused call can be sent again. Without room the client is paused until its call is sent;
 * from then on each byte is let go as it leaves, and the call can be sent once only.
 */
import type { IncomingMessage } from 'node:http'
import { Readable } from 'node:stream'
import type { Clock } from '../../clock.ts'
import { HeldBody, type HeldBytes } from './body.ts'

/** A form is held whole up to this size, bytes: most of them are here before they could be sent. */
export const wholeUploadBytes = 256 * 1024

export interface ArrivalPorts {
  /** Most bytes of one body that are kept. */
  readonly limitBytes: number
  readonly held: HeldBytes
  readonly clock: Clock
  /** Longest time without a byte from the client while its call is under way, milliseconds. */
  readonly stallMs: number
}

export class ArrivingBody {
  readonly #request: IncomingMessage
  readonly #ports: ArrivalPorts
  /** What has arrived and is kept, or not sent yet. */
  #chunks: Array<Buffer> = []
  #keptBytes = 0
  #arrivedBytes = 0
  #isWhole = false
  #isKeeping = true
  #isReleased = false
  #reading: Readable | null = null
  /** Index of the chunk that the reading takes next. */
  #next = 0
  #stalled: () => void = () => {}
  #cancelStall: (() => void) | null = null

  constructor(request: IncomingMessage, ports: ArrivalPorts) {
    this.#request = request
    this.#ports = ports
    request.on('data', (chunk: Buffer) => this.#arrived(chunk))
    request.on('end', () => {
      this.#isWhole = true
      this.#feed()
    })
    request.on('close', () => this.#watch())
  }

  /** What has arrived so far. Only before it is opened. */
  get bytes(): Buffer {
    return this.#chunks.length === 1 ? (this.#chunks[0] as Buffer) : Buffer.concat(this.#chunks)
  }

  get arrivedBytes(): number {
    return this.#arrivedBytes
  }

  get isWhole(): boolean {
    return this.#isWhole
  }

  /** There was no room to keep another byte. */
  get isFull(): boolean {
    return !this.#isKeeping
  }

  /** Its size as the client states it; what has arrived where it states none. Bytes. */
  get totalBytes(): number {
    return Number(this.#request.headers['content-length'] ?? this.#arrivedBytes)
  }

  /** It can be sent from its first byte on. */
  get isRepeatable(): boolean {
    return this.#isKeeping
  }

  /** Hears that the client has stopped sending while its call was under way. */
  whenStalled(stalled: () => void): void {
    this.#stalled = stalled
  }

  /** The body as one that is held; only when it is whole and kept. It takes the place of this one. */
  toHeld(): HeldBody {
    const whole = new HeldBody(this.bytes, this.#ports.held)
    this.#isReleased = true
    this.#chunks = []
    return whole
  }

  /** The body from its first byte on, as it comes. A reading that was opened before ends. */
  open(): Readable {
    this.#reading?.destroy()
    this.#next = 0
    this.#reading = new Readable({ read: () => this.#feed() })
    return this.#reading
  }

  /** It is not needed any more. What still comes is read and dropped, so that the client sees its answer. */
  release(): void {
    if (this.#isReleased) return
    this.#isReleased = true
    this.#ports.held.drop(this.#keptBytes)
    this.#keptBytes = 0
    this.#chunks = []
    this.#reading?.destroy()
    this.#reading = null
    this.#watch()
    this.#request.resume()
  }

  #arrived(chunk: Buffer): void {
    if (this.#isReleased) return
    this.#arrivedBytes += chunk.length
    this.#chunks.push(chunk)
    if (this.#isKeeping) this.#keep(chunk)
    this.#feed()
    // The chunk that finds no room is kept beyond the bound: it is here already.
    if (!this.#isKeeping && this.#chunks.length > 0) this.#request.pause()
  }

  #keep(chunk: Buffer): void {
    const { limitBytes, held } = this.#ports
    if (this.#keptBytes + chunk.length <= limitBytes && held.take(chunk.length))
      this.#keptBytes += chunk.length
    else this.#isKeeping = false
  }

  #feed(): void {
    const reading = this.#reading
    if (reading === null) return
    while (this.#next < this.#chunks.length) {
      const chunk = this.#chunks[this.#next] as Buffer
      this.#next += 1
      if (!this.#isKeeping) this.#letGo()
      if (!reading.push(chunk)) return this.#watch()
    }
    if (this.#isWhole) {
      this.#reading = null
      reading.push(null)
    } else if (!this.#isKeeping) this.#request.resume()
    this.#watch()
  }

  /** What the reading has taken is not kept any more. */
  #letGo(): void {
    let bytes = 0
    for (const chunk of this.#chunks.splice(0, this.#next)) bytes += chunk.length
    this.#next = 0
    const counted = Math.min(bytes, this.#keptBytes)
    this.#keptBytes -= counted
    this.#ports.held.drop(counted)
  }

  /** Measures the client's silence while the provider waits for more. */
  #watch(): void {
    this.#cancelStall?.()
    this.#cancelStall = null
    const { clock, stallMs } = this.#ports
    const isAwaited = this.#reading !== null && this.#next === this.#chunks.length && !this.#request.destroyed
    if (isAwaited && !this.#isWhole) this.#cancelStall = clock.after(stallMs, () => this.#stalled())
  }
}
