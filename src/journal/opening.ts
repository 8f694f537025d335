/** Why a file cannot be opened as a journal, in words that say what to do. */
import { type Stats, statSync } from 'node:fs'
import { dirname, join } from 'node:path'
import {
  JournalCorrupt,
  JournalFailure,
  JournalLocked,
  JournalTooNew,
  JournalUnavailable,
} from './journal.ts'

/** SQLite's primary result codes (https://www.sqlite.org/rescode.html). */
const sqlite = { busy: 5, readOnly: 8, corrupt: 11, cannotOpen: 14, notADatabase: 26 }

/** Turns what the system or SQLite said on opening `path` into one of the journal's own errors. */
export const explainOpening = (path: string, error: unknown): Error => {
  if (isOwn(error)) return error
  const folder = dirname(path)
  if (look(folder)?.isDirectory() !== true) {
    return new JournalUnavailable(
      path,
      `folder ${folder} does not exist`,
      'create it, or pass another path',
      error,
    )
  }
  const found = look(path)
  if (found?.isDirectory()) {
    const example = join(path, 'lanes.db')
    return new JournalUnavailable(path, 'is a directory', `pass a file path such as ${example}`, error)
  }
  const code = sqliteCode(error)
  if (code === sqlite.notADatabase) {
    return new JournalUnavailable(path, 'is not an SQLite file', 'move it away, or pass another path', error)
  }
  if (code === sqlite.corrupt) return new JournalCorrupt(path, 'file', messageOf(error))
  if (code === sqlite.busy) {
    return new JournalUnavailable(
      path,
      'another program keeps it in a transaction',
      'end that program (an open sqlite3 shell, a backup) and try again',
      error,
    )
  }
  const isForbidden = ['EACCES', 'EPERM', 'EROFS'].includes(systemCode(error))
  if (isForbidden || code === sqlite.readOnly || code === sqlite.cannotOpen) {
    return new JournalUnavailable(
      path,
      found === undefined ? `cannot be created in ${folder} by this user` : 'cannot be written by this user',
      `give the user write access to ${found === undefined ? folder : `the file and to ${folder}`}, or pass another path`,
      error,
    )
  }
  return new JournalFailure(path, 'open', error)
}

/** Whether SQLite may not write where it would have to. */
export const isForbidden = (error: unknown): boolean => {
  const code = sqliteCode(error)
  return code === sqlite.readOnly || code === sqlite.cannotOpen
}

/** Whether SQLite says that the file's pages are damaged. */
export const isDamage = (error: unknown): boolean => {
  const code = sqliteCode(error)
  return code === sqlite.corrupt || code === sqlite.notADatabase
}

export const messageOf = (error: unknown): string => {
  return error instanceof Error ? error.message : String(error)
}

const isOwn = (error: unknown): error is Error => {
  return (
    error instanceof JournalLocked ||
    error instanceof JournalTooNew ||
    error instanceof JournalUnavailable ||
    error instanceof JournalCorrupt ||
    error instanceof JournalFailure
  )
}

/** Extended codes carry the primary one in their low byte. */
const sqliteCode = (error: unknown): number | undefined => {
  if (!(error instanceof Error && 'errcode' in error && typeof error.errcode === 'number')) return undefined
  return error.errcode & 0xff
}

const systemCode = (error: unknown): string => {
  return error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : ''
}

const look = (path: string): Stats | undefined => {
  try {
    return statSync(path)
  } catch {
    return undefined
  }
}
