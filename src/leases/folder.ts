/** The folder that foreground leases share: which user may own it, and which leases it holds. */
import { lstatSync, mkdirSync, readdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { InvalidInput } from '../../machines/index.ts'
import { isRecordName, isTemporaryName, judge, othersMode, readRecord, type Validity } from './record.ts'

/** The most records that one look reads. Newer records come first; expired ones do not count. */
export const maxRecords = 128

/** A temporary file older than this was left by a process that died, milliseconds. */
const abandonedAfterMs = 60_000

/** This user's id. Throws `InvalidInput` on systems without user ids. */
export const ownUid = (): number => {
  const uid = process.getuid?.()
  if (uid !== undefined) return uid
  throw new InvalidInput([
    { field: 'leases', expected: 'a system whose files have owners and modes', got: process.platform },
  ])
}

const missing = 'nothing'

/** The fault of a folder, or null. */
const faultOf = (folder: string, uid: number): string | null => {
  const stats = lstatSync(folder, { throwIfNoEntry: false })
  if (stats === undefined) return missing
  if (stats.isSymbolicLink()) return 'a symbolic link'
  if (!stats.isDirectory()) return 'no folder'
  if (stats.uid !== uid) return `a folder of user ${stats.uid}`
  const mode = (stats.mode & 0o777).toString(8)
  return mode === '700' ? null : `mode 0${mode}`
}

/**
 * Makes the folder when it is missing. Throws `InvalidInput` when other users could read or change its files.
 */
export const prepareFolder = (folder: string, uid: number): void => {
  if (faultOf(folder, uid) === missing) mkdirSync(folder, { recursive: true, mode: 0o700 })
  const fault = faultOf(folder, uid)
  if (fault === null) return
  throw new InvalidInput([
    {
      field: 'leases.folder',
      expected: `a folder of user ${uid} with mode 0700 that is no symbolic link`,
      got: `${fault} at ${JSON.stringify(folder)}`,
    },
  ])
}

export interface Look {
  /** Another process holds a lease. */
  readonly active: boolean
  /** Records read, without the expired ones. */
  readonly inspected: number
  /** Expired records and abandoned temporary files removed. */
  readonly swept: number
}

export interface LookOptions extends Validity {
  readonly uid: number
  /** Names of this process's own records. */
  readonly own: ReadonlySet<string>
}

const nothing: Look = { active: false, inspected: 0, swept: 0 }

interface Entry {
  readonly path: string
  readonly modifiedNs: bigint
}

const remove = (path: string): number => {
  try {
    rmSync(path)
    return 1
  } catch {
    // Another process swept it first.
    return 0
  }
}

/**
 * This user's records, newest first: a record in force was written a moment ago, whatever other files lie
 * here.
 */
const entriesOf = (folder: string, { uid, own, nowMs }: LookOptions) => {
  const records: Array<Entry> = []
  let swept = 0
  for (const name of readdirSync(folder)) {
    const temporary = isTemporaryName(name)
    if ((!temporary && !isRecordName(name)) || own.has(name)) continue
    const path = join(folder, name)
    const stats = lstatSync(path, { bigint: true, throwIfNoEntry: false })
    if (stats === undefined || !stats.isFile() || Number(stats.uid) !== uid) continue
    if (temporary) {
      if (Number(stats.mtimeMs) + abandonedAfterMs <= nowMs) swept += remove(path)
    } else if ((Number(stats.mode) & othersMode) === 0) records.push({ path, modifiedNs: stats.mtimeNs })
  }
  records.sort((one, other) => (one.modifiedNs < other.modifiedNs ? 1 : -1))
  return { records, swept }
}

/**
 * Looks for leases of other processes. Removes expired records, so that each is read only for a while. A
 * record stays for a short time after it expires, because its holder may be about to renew it (see
 * `beat.ts`). A folder that is not safe or not readable holds no lease.
 */
export const lookInto = (folder: string, options: LookOptions): Look => {
  try {
    if (faultOf(folder, options.uid) !== null) return nothing
    const { records, swept } = entriesOf(folder, options)
    const look = { active: false, inspected: 0, swept }
    for (const { path } of records) {
      if (look.inspected >= maxRecords) break
      const text = readRecord(path, options.uid)
      const verdict = text === null ? 'invalid' : judge(text, options)
      if (verdict !== 'expired') look.inspected += 1
      if (verdict === 'live') look.active = true
      if (verdict === 'expired' && hasLongExpired(text as string, options)) look.swept += remove(path)
    }
    return look
  } catch {
    return nothing
  }
}

const hasLongExpired = (text: string, { nowMs, ttlMs }: Validity): boolean =>
  judge(text, { nowMs: nowMs - 2 * ttlMs, ttlMs }) === 'expired'
