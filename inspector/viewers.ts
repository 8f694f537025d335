/**
 * Many viewers, one ring. An observation costs a scope one array write, for any number of viewers. A timer
 * makes the frames once for all viewers at the same place. A viewer that falls behind by more than the ring
 * loses the oldest frames, is told how many, and can ask the journal.
 */

import { entryFrame } from './projection.ts'
import type { ActorFrame, EntryFrame, Frame, ScopeRow } from './protocol.ts'

/** The channel for a viewer's frames. */
export interface ViewerPort {
  /** False: do not send more before `resume` is called. */
  readonly write: (text: string) => boolean
}

export interface Viewer {
  /** The port can take more. */
  readonly resume: () => void
  readonly leave: () => void
}

export interface ViewersOptions {
  /** Rows of these scopes as they are now. */
  readonly rows: (scopes: ReadonlySet<string>) => ReadonlyArray<ScopeRow>
  /** The most observations that a viewer may fall behind. */
  readonly ringSize?: number
  readonly flushMs?: number
  readonly rowsMs?: number
}

type Item = { readonly entry: EntryFrame } | { readonly actor: ActorFrame }

interface Seat {
  readonly port: ViewerPort
  /** Number of the next item. */
  next: number
  blocked: boolean
  dropped: number
}

/** The most items in one message. */
const batchSize = 2_000

export const sseText = (frame: Frame): string => `data: ${JSON.stringify(frame)}\n\n`

export class Viewers {
  readonly #ring: Item[] = []
  readonly #size: number
  readonly #flushMs: number
  readonly #rowsMs: number
  readonly #rows: ViewersOptions['rows']
  readonly #seats = new Set<Seat>()
  readonly #changed = new Set<string>()
  #head = 0
  #timer: NodeJS.Timeout | null = null
  #rowsAt = 0
  #droppedTotal = 0

  constructor({ rows, ringSize = 8_192, flushMs = 100, rowsMs = 500 }: ViewersOptions) {
    this.#rows = rows
    this.#size = ringSize
    this.#flushMs = flushMs
    this.#rowsMs = rowsMs
  }

  get count(): number {
    return this.#seats.size
  }

  /** Frames that viewers have lost so far. */
  get dropped(): number {
    return this.#droppedTotal
  }

  /** Takes an observation of a scope. O(1), and no work at all without viewers. */
  entry(entry: EntryFrame): void {
    if (this.#seats.size === 0) return
    this.#changed.add(entry.scope)
    this.#push({ entry })
  }

  actor(actor: ActorFrame): void {
    if (this.#seats.size > 0) this.#push({ actor })
  }

  /** Adds a viewer that gets everything from now on. */
  join(port: ViewerPort, hello: ReadonlyArray<Frame>): Viewer {
    const seat: Seat = { port, next: this.#head, blocked: false, dropped: 0 }
    this.#seats.add(seat)
    seat.blocked = !port.write(hello.map(sseText).join(''))
    return {
      resume: () => {
        seat.blocked = false
        this.#arm()
      },
      leave: () => {
        this.#seats.delete(seat)
        if (this.#seats.size === 0) this.#rest()
      },
    }
  }

  close(): void {
    this.#seats.clear()
    this.#rest()
  }

  #push(item: Item): void {
    this.#ring[this.#head % this.#size] = item
    this.#head += 1
    this.#arm()
  }

  #rest(): void {
    if (this.#timer !== null) clearTimeout(this.#timer)
    this.#timer = null
    this.#changed.clear()
    this.#ring.length = 0
  }

  #arm(): void {
    if (this.#timer !== null || this.#seats.size === 0) return
    this.#timer = setTimeout(() => {
      this.#timer = null
      this.#flush()
    }, this.#flushMs)
    this.#timer.unref()
  }

  #flush(): void {
    const rows = this.#rowsText()
    // Viewers at the same place share the same bytes, made once.
    const texts = new Map<number, { readonly text: string; readonly next: number }>()
    let isBehind = false
    for (const seat of this.#seats) {
      if (seat.blocked) continue
      const lost = Math.max(0, this.#head - this.#size - seat.next)
      seat.next += lost
      let text = ''
      if (lost > 0) {
        seat.dropped += lost
        this.#droppedTotal += lost
        text = sseText({ kind: 'dropped', count: lost, total: seat.dropped })
      }
      const batch = texts.get(seat.next) ?? this.#batch(seat.next)
      texts.set(seat.next, batch)
      text += batch.text + rows
      seat.next = batch.next
      if (text !== '') seat.blocked = !seat.port.write(text)
      if (seat.next < this.#head) isBehind = true
    }
    if (isBehind || this.#changed.size > 0) this.#arm()
  }

  #batch(from: number): { readonly text: string; readonly next: number } {
    const next = Math.min(this.#head, from + batchSize)
    const entries: EntryFrame[] = []
    const actors: ActorFrame[] = []
    for (let number = from; number < next; number += 1) {
      const item = this.#ring[number % this.#size] as Item
      if ('actor' in item) actors.push(item.actor)
      else {
        const frame = entryFrame(item.entry)
        if (frame !== null) entries.push(frame)
      }
    }
    const text =
      (entries.length > 0 ? sseText({ kind: 'entries', entries }) : '') +
      (actors.length > 0 ? sseText({ kind: 'actors', actors }) : '')
    return { text, next }
  }

  /** A row costs time for each waiting call, so rows are made at intervals and not for every flush. */
  #rowsText(): string {
    const now = performance.now()
    if (this.#changed.size === 0 || now - this.#rowsAt < this.#rowsMs) return ''
    this.#rowsAt = now
    const rows = this.#rows(this.#changed)
    this.#changed.clear()
    return rows.length === 0 ? '' : sseText({ kind: 'scopes', rows })
  }
}
