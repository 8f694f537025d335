/**
 * Reads rows out of a database file page by page, without its trees: what one damaged page hides from
 * SQLite is still there in the others. The format is SQLite's (https://www.sqlite.org/fileformat2.html);
 * whether a row is what was written is for the caller's checksums to say.
 */
import { existsSync, readFileSync } from 'node:fs'

export type Cell = number | string | null

/** A row as a page has it: of a table (`rowid`), or of a table without row ids (`rowid` null). */
export interface PageRow {
  readonly rowid: number | null
  readonly cells: ReadonlyArray<Cell>
}

const tableLeaf = 0x0d
const indexLeaf = 0x0a
const headerBytes = 100
const frameHeaderBytes = 24
const walHeaderBytes = 32
/** Larger than any record that a journal writes; a damaged length must not be believed. */
const mostPayloadBytes = 64 * 1024 * 1024

interface File {
  readonly pageBytes: number
  readonly count: number
  readonly page: (number: number) => Buffer | undefined
}

/** Pages as the WAL's last whole commit leaves them. */
const openFile = (path: string): File => {
  const main = readFileSync(path)
  const stated = main.length >= 18 ? main.readUInt16BE(16) : 0
  const pageBytes = stated === 1 ? 65_536 : stated >= 512 && (stated & (stated - 1)) === 0 ? stated : 4_096
  const newer = existsSync(`${path}-wal`) ? walPages(readFileSync(`${path}-wal`), pageBytes) : new Map()
  const count = Math.max(
    Math.ceil(main.length / pageBytes),
    ...(newer.size > 0 ? [largest(newer.keys())] : []),
  )
  const page = (number: number): Buffer | undefined => {
    const start = (number - 1) * pageBytes
    return newer.get(number) ?? (start < main.length ? main.subarray(start, start + pageBytes) : undefined)
  }
  return { pageBytes, count, page }
}

const largest = (numbers: Iterable<number>): number => {
  let most = 0
  for (const number of numbers) most = Math.max(most, number)
  return most
}

/** The newest committed copy of each page. A frame of another salt is left from before the last restart of the WAL. */
const walPages = (wal: Buffer, pageBytes: number): Map<number, Buffer> => {
  const committed = new Map<number, Buffer>()
  if (wal.length < walHeaderBytes) return committed
  const salt = wal.subarray(16, 24)
  const open = new Map<number, Buffer>()
  for (
    let at = walHeaderBytes;
    at + frameHeaderBytes + pageBytes <= wal.length;
    at += frameHeaderBytes + pageBytes
  ) {
    if (!wal.subarray(at + 8, at + 16).equals(salt)) break
    const body = at + frameHeaderBytes
    open.set(wal.readUInt32BE(at), wal.subarray(body, body + pageBytes))
    if (wal.readUInt32BE(at + 4) === 0) continue
    for (const [number, bytes] of open) committed.set(number, bytes)
    open.clear()
  }
  return committed
}

/** Every row on every leaf page that can be read, in no order; also what was deleted and not overwritten. */
export function* pageRows(path: string): Generator<PageRow> {
  const file = openFile(path)
  for (let number = 1; number <= file.count; number += 1) {
    const page = file.page(number)
    if (page === undefined || page.length < 8) continue
    const start = number === 1 ? headerBytes : 0
    const kind = page[start]
    if (kind !== tableLeaf && kind !== indexLeaf) continue
    const cells = Math.min(page.readUInt16BE(start + 3), Math.floor(file.pageBytes / 4))
    for (let index = 0; index < cells; index += 1) {
      const pointer = start + 8 + 2 * index
      const row = pointer + 2 <= page.length ? rowAt(file, page, page.readUInt16BE(pointer), kind) : undefined
      if (row !== undefined) yield row
    }
  }
}

/** The bytes of every page as text: what is left of rows that can no longer be told apart. */
export function* pageTexts(path: string): Generator<string> {
  const file = openFile(path)
  for (let number = 1; number <= file.count; number += 1) {
    const page = file.page(number)
    if (page !== undefined) yield page.toString('utf8')
  }
}

const rowAt = (file: File, page: Buffer, at: number, kind: number): PageRow | undefined => {
  try {
    const [payloadBytes, afterLength] = varint(page, at)
    if (payloadBytes > mostPayloadBytes) return undefined
    const [rowid, body] = kind === tableLeaf ? varint(page, afterLength) : [null, afterLength]
    const payload = payloadOf(file, page, body, payloadBytes, kind)
    return payload === undefined ? undefined : { rowid, cells: recordOf(payload) }
  } catch {
    // Offsets and lengths of a damaged page lead anywhere.
    return undefined
  }
}

/** A record that does not fit its page goes on in a chain of others. */
const payloadOf = (file: File, page: Buffer, at: number, bytes: number, kind: number): Buffer | undefined => {
  const usable = file.pageBytes
  const most = kind === tableLeaf ? usable - 35 : Math.floor(((usable - 12) * 64) / 255) - 23
  if (bytes <= most) return at + bytes <= page.length ? page.subarray(at, at + bytes) : undefined
  const least = Math.floor(((usable - 12) * 32) / 255) - 23
  const fitting = least + ((bytes - least) % (usable - 4))
  const local = fitting <= most ? fitting : least
  const pieces = [page.subarray(at, at + local)]
  let left = bytes - local
  for (let next = page.readUInt32BE(at + local); left > 0; ) {
    const more = next === 0 ? undefined : file.page(next)
    if (more === undefined) return undefined
    const piece = more.subarray(4, 4 + Math.min(left, usable - 4))
    if (piece.length === 0) return undefined
    pieces.push(piece)
    left -= piece.length
    next = more.readUInt32BE(0)
  }
  return Buffer.concat(pieces)
}

const recordOf = (payload: Buffer): ReadonlyArray<Cell> => {
  const [headerEnd, first] = varint(payload, 0)
  const cells: Cell[] = []
  let body = headerEnd
  for (let at = first; at < headerEnd; ) {
    const [serial, next] = varint(payload, at)
    const [cell, bytes] = cellOf(payload, body, serial)
    cells.push(cell)
    body += bytes
    at = next
  }
  if (body > payload.length) throw new RangeError('a cell reaches beyond its record')
  return cells
}

const integerBytes = [0, 1, 2, 3, 4, 6, 8]

const cellOf = (payload: Buffer, at: number, serial: number): readonly [cell: Cell, bytes: number] => {
  if (serial === 0) return [null, 0]
  if (serial <= 6) {
    const bytes = integerBytes[serial]!
    return [bytes <= 6 ? payload.readIntBE(at, bytes) : Number(payload.readBigInt64BE(at)), bytes]
  }
  if (serial === 7) return [payload.readDoubleBE(at), 8]
  if (serial === 8 || serial === 9) return [serial - 8, 0]
  const bytes = (serial - (serial % 2 === 0 ? 12 : 13)) / 2
  if (bytes < 0 || at + bytes > payload.length) throw new RangeError('a cell reaches beyond its record')
  return [serial % 2 === 0 ? null : payload.toString('utf8', at, at + bytes), bytes]
}

/** SQLite's variable-length integers: seven bits a byte, eight in the ninth. */
const varint = (bytes: Buffer, at: number): readonly [value: number, next: number] => {
  let value = 0
  for (let index = 0; index < 8; index += 1) {
    const byte = bytes.readUInt8(at + index)
    value = value * 128 + (byte & 0x7f)
    if (byte < 0x80) return [value, at + index + 1]
  }
  return [value * 256 + bytes.readUInt8(at + 8), at + 9]
}
