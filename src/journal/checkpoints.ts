/** Checkpoints as rows: snapshots in parts, each checkpoint complete only with its last part. */
import type { DatabaseSync, StatementSync } from 'node:sqlite'
import { crc32 } from 'node:zlib'
import { type Checkpoint, JournalCorrupt } from './journal.ts'
import { inReadTransaction } from './rows.ts'
import type { CheckpointPart } from './wire.ts'

/** UTF-16 units in one part: about a millisecond of writing. */
const partLength = 256 * 1024

/** Cuts a snapshot into parts. A surrogate pair stays whole: half of one has no UTF-8 form. */
export function* checkpointParts({ scope, position, at, snapshot }: Checkpoint): Generator<CheckpointPart> {
  let start = 0
  for (let part = 0; ; part++) {
    let end = Math.min(start + partLength, snapshot.length)
    if (end < snapshot.length && isHighSurrogate(snapshot.charCodeAt(end - 1))) end--
    const piece = { scope, position, part, text: snapshot.slice(start, end) }
    if (end === snapshot.length) {
      yield { ...piece, complete: { at, parts: part + 1 } }
      return
    }
    yield piece
    start = end
  }
}

/** What a checkpoint says about itself. */
export interface CheckpointRow {
  readonly scope: string
  readonly position: number
  readonly at: number
  readonly parts: number
  readonly checksum: number
}

export class CheckpointStore {
  readonly #db: DatabaseSync
  readonly #path: string
  readonly #put: StatementSync
  readonly #putPart: StatementSync
  readonly #exists: StatementSync
  readonly #parts: StatementSync
  readonly #newest: StatementSync
  readonly #ofScope: StatementSync
  readonly #all: StatementSync
  readonly #drop: StatementSync
  readonly #dropParts: StatementSync
  readonly #dropUnfinished: StatementSync
  /** Checksums so far of checkpoints whose last part has not come, by scope. */
  readonly #sums = new Map<string, number>()

  constructor(db: DatabaseSync, path: string) {
    this.#db = db
    this.#path = path
    this.#put = db.prepare('insert or replace into checkpoints values (?, ?, ?, ?, ?)')
    this.#putPart = db.prepare('insert or replace into checkpoint_parts values (?, ?, ?, ?)')
    this.#exists = db.prepare('select 1 from checkpoints where scope = ? and position = ?')
    this.#parts = db.prepare(
      'select text from checkpoint_parts where scope = ? and position = ? and part < ? order by part',
    )
    this.#newest = db.prepare(
      `select scope, max(position) as position, at, parts, checksum from checkpoints
       where at <= ? group by scope order by scope`,
    )
    this.#ofScope = db.prepare(
      'select scope, position, at, parts, checksum from checkpoints where scope = ? order by position desc',
    )
    this.#all = db.prepare(
      'select scope, position, at, parts, checksum from checkpoints order by position, scope',
    )
    this.#drop = db.prepare('delete from checkpoints where scope = ? and position = ?')
    this.#dropParts = db.prepare('delete from checkpoint_parts where scope = ? and position = ?')
    this.#dropUnfinished = db.prepare(
      `delete from checkpoint_parts where not exists (select 1 from checkpoints c
       where c.scope = checkpoint_parts.scope and c.position = checkpoint_parts.position)`,
    )
  }

  /**
   * Stores one part inside the caller's transaction. With the last one, checkpoints of the scope
   * that are closer together than `spacingMs` are thinned out; the newest always stays. All stay
   * when it is absent. A checkpoint that is already there is left alone: the same history makes
   * the same snapshot, and half of a rewrite would be worse than none.
   */
  put({ scope, position, part, text, complete }: CheckpointPart, spacingMs?: number): void {
    if (this.#exists.get(scope, position) !== undefined) return
    this.#putPart.run(scope, position, part, text)
    const sum = crc32(text, part === 0 ? 0 : (this.#sums.get(scope) ?? 0))
    if (complete === undefined) {
      this.#sums.set(scope, sum)
      return
    }
    this.#sums.delete(scope)
    this.#put.run(scope, position, complete.at, complete.parts, seal(sum, scope, position, complete.at))
    if (spacingMs !== undefined) this.#thinOut(scope, spacingMs)
  }

  /** For each scope the newest checkpoint at or before `untilAt`. Throws `JournalCorrupt`. */
  newest(untilAt = Number.MAX_VALUE): Array<Checkpoint> {
    return inReadTransaction(this.#db, () => this.rows(untilAt).map((row) => this.load(row)))
  }

  /** As `newest`, without the snapshots: cheap at any size. */
  rows(untilAt = Number.MAX_VALUE): Array<CheckpointRow> {
    return this.#newest.all(Math.min(untilAt, Number.MAX_VALUE)) as unknown as Array<CheckpointRow>
  }

  /** All of every scope, oldest first, without the snapshots. */
  allRows(): Array<CheckpointRow> {
    return this.#all.all() as unknown as Array<CheckpointRow>
  }

  /** All of one scope, newest first, without the snapshots. */
  ofScope(scope: string): Array<CheckpointRow> {
    return this.#ofScope.all(scope) as unknown as Array<CheckpointRow>
  }

  /** Throws `JournalCorrupt` naming the checkpoint. */
  load({ scope, position, at, parts, checksum }: CheckpointRow): Checkpoint {
    const rows = this.#parts.all(scope, position, parts) as unknown as Array<{ text: unknown }>
    const texts = rows.map(({ text }) => String(text))
    const sum = texts.reduce((crc, text) => crc32(text, crc), 0)
    if (texts.length !== parts || seal(sum, scope, position, at) !== checksum) {
      const problem =
        texts.length === parts
          ? 'its checksum does not fit its content'
          : `${parts} parts were written, ${texts.length} are here`
      throw new JournalCorrupt(this.#path, `checkpoints ${scope} ${position}`, problem)
    }
    return { scope, position, at, snapshot: texts.join('') }
  }

  drop(scope: string, position: number): void {
    this.#drop.run(scope, position)
    this.#dropParts.run(scope, position)
  }

  /** Removes what a crash between two parts has left. Only when no checkpoint is under way. */
  dropUnfinished(): void {
    this.#dropUnfinished.run()
  }

  #thinOut(scope: string, spacingMs: number): void {
    const [, previous, beforePrevious] = this.ofScope(scope)
    if (previous === undefined) return
    const isCrowded = beforePrevious !== undefined && previous.at - beforePrevious.at < spacingMs
    if (isCrowded || spacingMs === 0) this.drop(scope, previous.position)
  }
}

/** CRC-32 of the whole snapshot, then of what the checkpoint says about it. */
const seal = (snapshotSum: number, scope: string, position: number, at: number): number => {
  return crc32(`${position} ${at} ${scope}`, snapshotSum)
}

const isHighSurrogate = (unit: number): boolean => {
  return unit >= 0xd800 && unit <= 0xdbff
}
