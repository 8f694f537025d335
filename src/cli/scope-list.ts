/** The scopes of a journal file, and how one of them is forgotten by hand. */

import { openHost } from '../host/host.ts'
import { kernelOf } from '../host/internal.ts'
import type { KnownScope } from '../journal/journal.ts'
import { openSqliteReader } from '../journal/reader.ts'
import { CliFailure } from './failure.ts'

/** By name; also while a host writes. */
export const listScopes = async (path: string): Promise<ReadonlyArray<KnownScope>> => {
  const reader = await openSqliteReader(path)
  try {
    return await reader.scopes()
  } finally {
    await reader.close()
  }
}

/** Throws when the journal does not know the scope, when something in it waits or runs, or when a host writes. */
export const dropScope = async (path: string, scope: string): Promise<void> => {
  // Asked first: to open a path for writing would make a journal where there is none.
  const known = await listScopes(path)
  if (!known.some((one) => one.scope === scope))
    throw new CliFailure({ message: `journal ${path} knows no scope ${JSON.stringify(scope)}` })
  const host = await openHost({ journal: path })
  try {
    if (await kernelOf(host).forget(scope)) return
    throw new CliFailure({ message: `scope ${scope} has calls that wait or ran; it is not forgotten` })
  } finally {
    await host.close()
  }
}
