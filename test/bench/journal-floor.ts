/** The cost of the disk and SQLite alone: node:sqlite in WAL mode with full sync, in this thread. */
import { DatabaseSync } from 'node:sqlite'
import { median } from './journal-measure.ts'

export class RawJournal {
  readonly #db: DatabaseSync
  readonly #insert

  constructor(path: string) {
    this.#db = new DatabaseSync(path)
    this.#db.exec('pragma journal_mode = wal; pragma synchronous = full')
    this.#db.exec(
      'create table entries (position integer primary key, at real, scope text, record text, checksum integer)',
    )
    this.#insert = this.#db.prepare('insert into entries (at, scope, record, checksum) values (?, ?, ?, ?)')
  }

  commit(records: ReadonlyArray<string>): void {
    this.#db.exec('begin immediate')
    for (const record of records) this.#insert.run(1_700_000_000_000, 'anthropic/k1/m', record, 1)
    this.#db.exec('commit')
  }

  close(): void {
    this.#db.close()
  }
}

/** Median microseconds of one commit of `records`. */
export const rawCommitUs = (path: string, records: ReadonlyArray<string>, commits: number): number => {
  const raw = new RawJournal(path)
  const times: number[] = []
  for (let n = 0; n < commits; n += 1) {
    const beganMs = performance.now()
    raw.commit(records)
    times.push((performance.now() - beganMs) * 1_000)
  }
  raw.close()
  return median(times)
}
