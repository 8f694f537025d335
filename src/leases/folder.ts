/** The folder that foreground leases share: who may own it, and what a look into it finds. */
import { lstatSync, mkdirSync, readdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { InvalidInput } from '../../machines/index.ts'
import { isRecordName, isTemporaryName, judge, othersMode, readRecord, type Validity } from './record.ts'

/** Records that one look believes or refuses; what is newer comes first, expired ones do not count. */
export const maxRecords = 128

/** A temporary file so old was left by a process that died, milliseconds. */
const abandonedAfterMs = 60_000

/** This user's id. Throws `InvalidInput` where users have none. */
export const ownUid = (): number => {
  const uid = process.getuid?.()
  if (uid !== undefined) return uid
  throw new InvalidInput([
    { field: 'leases', expected: 'a system whose files have owners and modes', got: process.platform },
  ])
}

const missing = 'nothing'

/** What is wrong with a folder, or null. */
const faultOf = (folder: string, uid: number): string | null => {
  const stats = lstatSync(folder, { throwIfNoEntry: false })
  if (stats === undefined) return missing
  if (stats.isSymbolicLink()) return 'a symbolic link'
  if (!stats.isDirectory()) return 'no folder'
  if (stats.uid !== uid) return `a folder of user ${stats.uid}`
  const mode = (stats.mode & 0o777).toString(8)
  return mode === '700' ? null : `mode 0${mode}`
}

/** Makes the folder when it is missing. Throws `InvalidInput` when others could read or change what is in it. */
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
  /** Some other process holds a lease. */
  readonly active: boolean
  /** Records looked at, the expired ones left out. */
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

/** This user's records, newest first: one in force was written a moment ago, whatever else lies here. */
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
 * Looks for leases of other processes. A record that expired is removed, so that its cost is paid
 * once, but not at once: its holder may be about to renew it (see `beat.ts`). A folder that cannot
 * be trusted or read holds no lease.
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
