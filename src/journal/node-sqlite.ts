/** Node's own SQLite. It is asked for when a file is opened, so that a Node without it runs what needs no file. */
import { JournalUnavailable } from './journal.ts'

/** Node's `node:sqlite`. Throws `JournalUnavailable` under a Node that has none. */
export const nodeSqlite = (path: string): typeof import('node:sqlite') => {
  const found = process.getBuiltinModule?.('node:sqlite')
  if (found !== undefined) return found
  throw new JournalUnavailable(
    path,
    `needs node:sqlite, which Node ${process.versions.node} does not have`,
    "run Node 22.19 or newer, or pass ':memory:'",
  )
}
