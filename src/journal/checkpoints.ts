/** Checkpoints as rows: snapshots in parts, each checkpoint complete only with its last part. */
import type { DatabaseSync, StatementSync } from 'node:sqlite'
import { crc32 } from 'node:zlib'
import { type Checkpoint, type CheckpointQuery, JournalCorrupt } from './journal.ts'
import { inReadTransaction } from './rows.ts'
import type { CheckpointPart } from './wire.ts'

/** UTF-16 units in one part: about a millisecond of writing. */
const partLength = 256 * 1024

/** Cuts a snapshot into parts. A surrogate pair stays whole: half of one has no UTF-8 form. */
export function* checkpointParts({
  scope,
  position,
  at,
  snapshot,
  resting = false,
}: Checkpoint): Generator<CheckpointPart> {
  let start = 0
  for (let part = 0; ; part++) {
    let end = Math.min(start + partLength, snapshot.length)
    if (end < snapshot.length && isHighSurrogate(snapshot.charCodeAt(end - 1))) end--
    const piece = { scope, position, part, text: snapshot.slice(start, end) }
    if (end === snapshot.length) {
      yield { ...piece, complete: { at, parts: part + 1, resting } }
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
  /** As SQLite has it. */
  readonly resting: 0 | 1
}

const columns = 'scope, position, at, parts, checksum, resting'
const noNewer = 'not exists (select 1 from checkpoints n where n.scope = c.scope and n.position > c.position)'

export class CheckpointStore {
  readonly #db: DatabaseSync
  readonly #path: string
  readonly #statements = new Map<string, StatementSync>()
  /** Checksums so far of checkpoints whose last part has not come, by scope. */
  readonly #sums = new Map<string, number>()

  constructor(db: DatabaseSync, path: string) {
    this.#db = db
    this.#path = path
  }

  /**
   * Stores one part inside the caller's transaction. With the last one, checkpoints of the scope
   * that are closer together than `spacingMs` are thinned out; the newest always stays. All stay
   * when it is absent. A checkpoint that is already there is left alone: the same history makes
   * the same snapshot, and half of a rewrite would be worse than none.
   */
  put({ scope, position, part, text, complete }: CheckpointPart, spacingMs?: number): void {
    if (this.#sql('select 1 from checkpoints where scope = ? and position = ?').get(scope, position)) return
    this.#sql('insert or replace into checkpoint_parts values (?, ?, ?, ?)').run(scope, position, part, text)
    const sum = crc32(text, part === 0 ? 0 : (this.#sums.get(scope) ?? 0))
    if (complete === undefined) {
      this.#sums.set(scope, sum)
      return
    }
    this.#sums.delete(scope)
    const { at, parts, resting } = complete
    this.#sql('insert or replace into checkpoints values (?, ?, ?, ?, ?, ?)').run(
      scope,
      position,
      at,
      parts,
      seal(sum, { scope, position, at, resting }),
      resting ? 1 : 0,
    )
    if (spacingMs !== undefined) this.#thinOut(scope, spacingMs)
  }

  /** What a `CheckpointQuery` asks for, in scope order. Throws `JournalCorrupt`. */
  newest({ untilAt, scope, mostResting }: CheckpointQuery = {}): Array<Checkpoint> {
    return inReadTransaction(this.#db, () => {
      const rows = mostResting === undefined ? this.rows(untilAt) : this.#toBegin(mostResting)
      return rows.filter((row) => scope === undefined || row.scope === scope).map((row) => this.load(row))
    })
  }

  /** The newest of one scope, without its snapshot. */
  newestRow(scope: string): CheckpointRow | undefined {
    return this.#sql(`select ${columns} from checkpoints where scope = ? order by position desc limit 1`).get(
      scope,
    ) as CheckpointRow | undefined
  }

  /** The newest of every scope at or before `untilAt`, without the snapshots: cheap at any size. */
  rows(untilAt = Number.MAX_VALUE): Array<CheckpointRow> {
    const newest = this.#sql(
      `select scope, max(position) as position, at, parts, checksum, resting from checkpoints
       where at <= ? group by scope order by scope`,
    )
    return newest.all(Math.min(untilAt, Number.MAX_VALUE)) as unknown as Array<CheckpointRow>
  }

  /** All of every scope, oldest first, without the snapshots. */
  allRows(): Array<CheckpointRow> {
    return this.#sql(
      `select ${columns} from checkpoints order by position, scope`,
    ).all() as unknown as Array<CheckpointRow>
  }

  /** All of one scope, newest first, without the snapshots. */
  ofScope(scope: string): Array<CheckpointRow> {
    return this.#sql(`select ${columns} from checkpoints where scope = ? order by position desc`).all(
      scope,
    ) as unknown as Array<CheckpointRow>
  }

  /** The newest of every scope that is awake, and of so many that rest: looks at no other. */
  #toBegin(mostResting: number): Array<CheckpointRow> {
    const awake = this.#sql(`select ${columns} from checkpoints c where resting = 0 and ${noNewer}`)
    const resting = this.#sql(
      `select ${columns} from checkpoints c indexed by checkpoints_by_position
       where position >= 0 and resting = 1 and ${noNewer} order by position desc limit ?`,
    )
    const rows = [...awake.all(), ...resting.all(Math.min(mostResting, Number.MAX_SAFE_INTEGER))]
    return (rows as unknown as Array<CheckpointRow>).sort((one, other) => (one.scope < other.scope ? -1 : 1))
  }

  /** Throws `JournalCorrupt` naming the checkpoint. */
  load({ scope, position, at, parts, checksum, resting }: CheckpointRow): Checkpoint {
    const rows = this.#sql(
      'select text from checkpoint_parts where scope = ? and position = ? and part < ? order by part',
    ).all(scope, position, parts) as unknown as Array<{ text: unknown }>
    const texts = rows.map(({ text }) => String(text))
    const sum = texts.reduce((crc, text) => crc32(text, crc), 0)
    if (texts.length !== parts || seal(sum, { scope, position, at, resting: resting === 1 }) !== checksum) {
      const problem =
        texts.length === parts
          ? 'its checksum does not fit its content'
          : `${parts} parts were written, ${texts.length} are here`
      throw new JournalCorrupt(this.#path, `checkpoints ${scope} ${position}`, problem)
    }
    const checkpoint = { scope, position, at, snapshot: texts.join('') }
    return resting === 1 ? { ...checkpoint, resting: true } : checkpoint
  }

  drop(scope: string, position: number): void {
    this.#sql('delete from checkpoints where scope = ? and position = ?').run(scope, position)
    this.#sql('delete from checkpoint_parts where scope = ? and position = ?').run(scope, position)
  }

  /** All of a scope up to a position, inside the caller's transaction. */
  dropAll(scope: string, through: number): void {
    this.#sums.delete(scope)
    this.#sql('delete from checkpoints where scope = ? and position <= ?').run(scope, through)
    this.#sql('delete from checkpoint_parts where scope = ? and position <= ?').run(scope, through)
  }

  /** Removes the leftovers of a crash between two parts. Only when no checkpoint is under way. */
  dropUnfinished(): void {
    this.#sql(
      `delete from checkpoint_parts where not exists (select 1 from checkpoints c
       where c.scope = checkpoint_parts.scope and c.position = checkpoint_parts.position)`,
    ).run()
  }

  /** Prepared when first used: a reader never prepares what writes. */
  #sql(text: string): StatementSync {
    const known = this.#statements.get(text) ?? this.#db.prepare(text)
    this.#statements.set(text, known)
    return known
  }

  #thinOut(scope: string, spacingMs: number): void {
    const [, previous, beforePrevious] = this.ofScope(scope)
    if (previous === undefined) return
    const isCrowded = beforePrevious !== undefined && previous.at - beforePrevious.at < spacingMs
    if (isCrowded || spacingMs === 0) this.drop(scope, previous.position)
  }
}

/** CRC-32 of the whole snapshot, then of what the checkpoint says about it. */
const seal = (
  snapshotSum: number,
  { scope, position, at, resting }: Pick<Checkpoint, 'scope' | 'position' | 'at'> & { resting: boolean },
): number => crc32(`${position} ${at} ${scope}${resting ? ' resting' : ''}`, snapshotSum)

const isHighSurrogate = (unit: number): boolean => {
  return unit >= 0xd800 && unit <= 0xdbff
}
