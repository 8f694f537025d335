/**
 * Cuts an event stream into events as byte chunks arrive. It holds one event at a time, in a buffer with a
 * cap. Of a longer event it keeps the first bytes and the tail, where types and usages stand. Line ends may
 * be LF, CRLF or CR, and a chunk may end anywhere.
 */

/** Bytes of one event that are kept; a longer event is kept in part and marked `truncated`. */
export const eventCapBytes = 65_536
/** Bytes kept from the end of a longer event. Usage objects are a few hundred bytes. */
export const tailCapBytes = 4096
/** Bytes kept from the start of every event, however long it becomes. */
const headCapBytes = 512

export interface BytesEvent {
  /** The `event:` field; empty when there is none. */
  readonly name: string
  /** The data lines joined by LF, or only their tail when `truncated`. Valid until the next event. */
  readonly data: Buffer
  /** The first bytes of the data, also of a truncated event. */
  readonly head: Buffer
  readonly truncated: boolean
}

export interface EventCutter {
  push(chunk: Uint8Array): void
  /** The stream has ended: an event without its blank line counts. */
  end(): void
}

const lf = 10
const cr = 13

export const makeEventCutter = (onEvent: (event: BytesEvent) => void): EventCutter => {
  const data = makeTailBuffer()
  let name = ''
  let hasData = false

  const dispatch = (): void => {
    if (hasData || name !== '') {
      onEvent({ name, data: data.bytes(), head: data.head(), truncated: data.isTruncated() })
    }
    data.clear()
    name = ''
    hasData = false
  }

  const addData = (bytes: Buffer): void => {
    if (hasData) data.append(newline)
    data.append(bytes[0] === 32 ? bytes.subarray(1) : bytes)
    hasData = true
  }

  const lines = makeLineCutter((line) => {
    const bytes = line.bytes()
    const start = line.isTruncated() ? line.head() : bytes
    if (bytes.length === 0) dispatch()
    else if (startsWith(start, eventField)) name = start.toString('latin1', 6, 134).trim()
    else if (startsWith(start, dataField)) {
      addData(start.subarray(dataField.length))
      if (line.isTruncated()) {
        data.append(bytes)
        data.truncate()
      }
    }
  })

  return {
    push: lines.push,
    end: () => {
      lines.end()
      dispatch()
    },
  }
}

/** Cuts a stream into lines without their ends. `onLine` must copy the bytes that it keeps. */
const makeLineCutter = (onLine: (line: TailBuffer) => void): EventCutter => {
  const line = makeTailBuffer()
  let skipsLf = false
  let isFirst = true

  const endLine = (): void => {
    if (isFirst) line.dropMark()
    isFirst = false
    onLine(line)
    line.clear()
  }

  const push = (chunk: Uint8Array): void => {
    if (!(chunk instanceof Uint8Array)) return
    const bytes = Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength)
    let from = 0
    let nextCr = bytes.indexOf(cr)
    for (let nextLf = bytes.indexOf(lf); nextLf >= 0 || nextCr >= 0; ) {
      const at = nextLf < 0 || (nextCr >= 0 && nextCr < nextLf) ? nextCr : nextLf
      // The second half of a CRLF, perhaps in the next chunk, ends no other line.
      if (!(skipsLf && at === from && bytes[at] === lf)) {
        line.append(bytes.subarray(from, at))
        endLine()
      }
      skipsLf = bytes[at] === cr
      from = at + 1
      if (at === nextCr) nextCr = bytes.indexOf(cr, from)
      else nextLf = bytes.indexOf(lf, from)
    }
    if (from < bytes.length) {
      line.append(bytes.subarray(from))
      skipsLf = false
    }
  }

  return { push, end: endLine }
}

const newline = Buffer.from('\n')
const dataField = Buffer.from('data:')
const eventField = Buffer.from('event:')

const startsWith = (bytes: Buffer, field: Buffer): boolean => {
  return bytes.length >= field.length && bytes.compare(field, 0, field.length, 0, field.length) === 0
}

interface TailBuffer {
  append(bytes: Buffer): void
  truncate(): void
  /** Drops a byte order mark at the start. */
  dropMark(): void
  clear(): void
  bytes(): Buffer
  head(): Buffer
  isTruncated(): boolean
}

/** Grows up to `eventCapBytes`. Beyond that, old bytes are dropped, except for a tail. */
const makeTailBuffer = (): TailBuffer => {
  let store = Buffer.allocUnsafe(2048)
  const first = Buffer.alloc(headCapBytes)
  let firstLength = 0
  let length = 0
  let truncated = false

  const append = (bytes: Buffer): void => {
    if (firstLength < headCapBytes)
      firstLength += bytes.copy(first, firstLength, 0, headCapBytes - firstLength)
    if (length + bytes.length > eventCapBytes) {
      truncated = true
      const kept = Math.min(length, tailCapBytes)
      store.copy(store, 0, length - kept, length)
      length = kept
    }
    const added = bytes.length > eventCapBytes - length ? bytes.subarray(bytes.length - tailCapBytes) : bytes
    if (length + added.length > store.length) {
      const grown = Buffer.allocUnsafe(
        Math.min(eventCapBytes, Math.max(store.length * 2, length + added.length)),
      )
      store.copy(grown, 0, 0, length)
      store = grown
    }
    length += added.copy(store, length)
  }

  return {
    append,
    truncate: () => {
      truncated = true
    },
    dropMark: () => {
      if (truncated || length < 3 || store[0] !== 0xef || store[1] !== 0xbb || store[2] !== 0xbf) return
      store.copy(store, 0, 3, length)
      length -= 3
      first.copy(first, 0, 3, firstLength)
      firstLength -= 3
    },
    clear: () => {
      length = 0
      firstLength = 0
      truncated = false
    },
    bytes: () => store.subarray(0, length),
    head: () => first.subarray(0, firstLength),
    isTruncated: () => truncated,
  }
}
