/**
 * One process writes a journal at a time. The right to write is a row in the journal itself, so
 * that taking it is as atomic as a commit and every commit can check that it still holds (a
 * process that was suspended past its lease finds out before it writes, not after).
 */
import { randomUUID } from 'node:crypto'
import { readFileSync, readlinkSync } from 'node:fs'
import { hostname } from 'node:os'
import type { DatabaseSync } from 'node:sqlite'
import { JournalLocked, type LeaseHolder } from './journal.ts'

interface LeaseRow {
  readonly pid: number
  readonly host: string
  readonly started: string
  /** Which start of the machine it was; empty where the system does not say. */
  readonly boot: string
  /** Where its pid means something: containers may share a host name and number their processes alike. */
  readonly namespace: string
  readonly token: string
  readonly expires_at_ms: number
}

/** The process that may write now; undefined when nobody does, or only a dead one. Needs no write access. */
export const leaseHolder = (db: DatabaseSync, nowMs: number): LeaseHolder | undefined => {
  const row = readLease(db)
  if (row === undefined || row.expires_at_ms <= nowMs || isKnownDead(row)) return undefined
  return { pid: row.pid, host: row.host, expiresAtMs: row.expires_at_ms }
}

/** Takes the lease inside the caller's transaction and answers its token. Throws `JournalLocked`. */
export const takeLease = (db: DatabaseSync, path: string, nowMs: number, leaseMs: number): string => {
  const holder = leaseHolder(db, nowMs)
  if (holder !== undefined) throw new JournalLocked(path, holder)
  const token = randomUUID()
  db.prepare('insert or replace into lease values (1, ?, ?, ?, ?, ?, ?, ?)').run(
    process.pid,
    hostname(),
    startMark(process.pid) ?? '',
    token,
    nowMs + leaseMs,
    bootId(),
    pidNamespace(),
  )
  return token
}

/** Extends the lease. False when it is no longer ours. */
export const renewLease = (db: DatabaseSync, token: string, nowMs: number, leaseMs: number): boolean => {
  const renewed = db.prepare('update lease set expires_at_ms = ? where token = ?').run(nowMs + leaseMs, token)
  return renewed.changes === 1
}

/** Gives the lease back, if it is still ours. */
export const releaseLease = (db: DatabaseSync, token: string): void => {
  db.prepare('delete from lease where token = ?').run(token)
}

const readLease = (db: DatabaseSync): LeaseRow | undefined => {
  const row = db.prepare('select * from lease').get() as LeaseRow | undefined
  // Older releases did not write where a pid means something.
  return row === undefined ? undefined : { ...row, boot: row.boot ?? '', namespace: row.namespace ?? '' }
}

/**
 * True only when the holder is surely gone: its pid is free in this namespace of this host, or
 * belongs to a process that started at another time (pids are reused; a restarted container is
 * process 1 again). Of another namespace, or another start of the machine, only the lease's end is sure.
 */
const isKnownDead = ({ pid, host, started, boot, namespace }: LeaseRow): boolean => {
  if (host !== hostname() || boot !== bootId() || namespace !== pidNamespace()) return false
  try {
    process.kill(pid, 0)
  } catch (error) {
    // EPERM: it lives, under another user.
    return error instanceof Error && 'code' in error && error.code === 'ESRCH'
  }
  const startedNow = startMark(pid)
  return started !== '' && startedNow !== undefined && startedNow !== started
}

/** Linux draws one at every start of the machine. */
const bootId = (): string => {
  try {
    return readFileSync('/proc/sys/kernel/random/boot_id', 'latin1').trim()
  } catch {
    return ''
  }
}

/** Linux names it by a number, `pid:[4026531836]`. */
const pidNamespace = (): string => {
  try {
    return readlinkSync('/proc/self/ns/pid')
  } catch {
    return ''
  }
}

/** Tells two processes with one pid apart: start time in clock ticks since boot, where the system says (Linux). */
const startMark = (pid: number): string | undefined => {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'latin1')
    // The second field, the command in parentheses, may itself hold spaces and parentheses.
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
    return fields[19]
  } catch {
    return undefined
  }
}
