/** One foreground lease on disk: its text, its checks, and how it is written. */
import { randomBytes } from 'node:crypto'
import { closeSync, constants, fstatSync, openSync, readSync } from 'node:fs'
import { open, rename, rm } from 'node:fs/promises'
import { join } from 'node:path'

/** Larger records are not read. */
export const maxRecordBytes = 256

/** The mode bits with which another user could read, write or run the file. */
export const othersMode = 0o077

const recordName = /^[0-9a-f]{32}\.json$/
export const isRecordName = (name: string): boolean => recordName.test(name)
export const isTemporaryName = (name: string): boolean => /^\.[0-9a-f]{32}\.json\.tmp$/.test(name)

/** Random, so that a record does not reveal its writer. */
export const newRecordName = (): string => `${randomBytes(16).toString('hex')}.json`

/** `live` is in force, `expired` was in force, `invalid` is ignored. */
export type Verdict = 'live' | 'expired' | 'invalid'

export interface Validity {
  /** Epoch milliseconds. */
  readonly nowMs: number
  /** A record that expires later than twice this was not written by this package. */
  readonly ttlMs: number
}

/**
 * The expiry that a record's text states, epoch milliseconds; null when the text is not a record of version
 * 1.
 */
export const expiryOf = (text: string): number | null => {
  try {
    const record: unknown = JSON.parse(text)
    if (typeof record !== 'object' || record === null || Object.keys(record).length !== 2) return null
    const { version, expires_at: expiresAt } = record as Record<string, unknown>
    return version === 1 && Number.isFinite(expiresAt) ? (expiresAt as number) * 1_000 : null
  } catch {
    return null
  }
}

/** The verdict on a record's text. */
export const judge = (text: string, { nowMs, ttlMs }: Validity): Verdict => {
  const expiresAtMs = expiryOf(text)
  if (expiresAtMs === null) return 'invalid'
  if (expiresAtMs <= nowMs) return 'expired'
  return expiresAtMs <= nowMs + 2 * ttlMs ? 'live' : 'invalid'
}

/** The text of a private regular file of this user, at most `maxRecordBytes` long; null for anything else. */
export const readRecord = (path: string, uid: number): string | null => {
  let file: number
  try {
    // A symbolic link is not followed, and a pipe does not block.
    file = openSync(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK)
  } catch {
    return null
  }
  try {
    const stats = fstatSync(file)
    if (!stats.isFile() || stats.uid !== uid || (stats.mode & othersMode) !== 0) return null
    if (stats.size === 0 || stats.size > maxRecordBytes) return null
    const bytes = Buffer.alloc(maxRecordBytes + 1)
    const length = readSync(file, bytes)
    return length > maxRecordBytes ? null : bytes.toString('utf8', 0, length)
  } catch {
    return null
  } finally {
    closeSync(file)
  }
}

const sync = async (folder: string): Promise<void> => {
  const handle = await open(folder, constants.O_RDONLY | constants.O_DIRECTORY)
  try {
    await handle.sync()
  } finally {
    await handle.close()
  }
}

export interface NewRecord {
  readonly name: string
  /** Epoch milliseconds. */
  readonly expiresAtMs: number
  /** Asked when the record is on the disk. False drops the record before another process sees it. */
  readonly isWanted: () => boolean
}

/** Writes a record in its place: whole and durable, or not at all. Rejects with the file system's error. */
export const writeRecord = async (
  folder: string,
  { name, expiresAtMs, isWanted }: NewRecord,
): Promise<void> => {
  const temporary = join(folder, `.${name}.tmp`)
  const { O_WRONLY, O_CREAT, O_EXCL, O_NOFOLLOW } = constants
  try {
    const file = await open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0o600)
    try {
      await file.writeFile(JSON.stringify({ version: 1, expires_at: expiresAtMs / 1_000 }))
      // The umask may have removed bits, and its own user could then not read the record.
      await file.chmod(0o600)
      await file.sync()
    } finally {
      await file.close()
    }
    if (!isWanted()) return await rm(temporary, { force: true })
    await rename(temporary, join(folder, name))
  } catch (error) {
    await rm(temporary, { force: true }).catch(() => {})
    throw error
  }
  await sync(folder)
}
