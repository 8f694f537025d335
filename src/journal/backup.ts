/** `rightofway journal backup`: a copy of a journal at one moment, also while a host writes it. */
import { closeSync, existsSync, fsyncSync, openSync, renameSync, rmSync } from 'node:fs'
import { resolve } from 'node:path'
import { JournalUnavailable } from './journal.ts'
import { nodeSqlite } from './node-sqlite.ts'
import { openTables } from './reader.ts'

/**
 * Copies the journal in `file` to `out`, whole, with what is still in its WAL; the copy belongs to
 * nobody and opens at once. Throws `JournalUnavailable` when `out` exists, and as `openTables` does.
 */
export const backupJournal = (file: string, out: string): { readonly entries: number } => {
  const target = resolve(out)
  if (existsSync(target))
    throw new JournalUnavailable(target, 'exists already', 'a backup overwrites nothing: pass another path')
  const { db } = openTables(file)
  const fresh = `${target}.copying-${process.pid}`
  try {
    db.prepare('vacuum into ?').run(fresh)
    const { n } = db.prepare('select count(*) as n from entries').get() as { n: number }
    const copy = new (nodeSqlite(file).DatabaseSync)(fresh)
    copy.exec('delete from lease')
    copy.close()
    const descriptor = openSync(fresh, 'r+')
    fsyncSync(descriptor)
    closeSync(descriptor)
    renameSync(fresh, target)
    return { entries: n }
  } finally {
    db.close()
    rmSync(fresh, { force: true })
  }
}
