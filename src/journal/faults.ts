/**
 * Faults that tests ask for, as plain data so that they reach the worker thread. Each hits one
 * commit of entries, counted from 1 after opening, at one of the points where a crash or a disk
 * can make a difference.
 */

/** `write`: rows written, nothing committed. `sync`: committed, not synced. `told`: durable, not yet told. */
export type FaultPoint = 'write' | 'sync' | 'told'

export type Fault =
  | { readonly commit: number; readonly at: 'write' | 'sync'; readonly error: 'EIO' | 'ENOSPC' }
  | { readonly commit: number; readonly at: FaultPoint; readonly delayMs: number }
  | { readonly commit: number; readonly at: FaultPoint; readonly kill: true }

const messages = { EIO: 'i/o error', ENOSPC: 'no space left on device' }

/** Runs the faults of this commit at this point: delays the thread, kills the process, or throws as the system would. */
export const meetFault = (faults: ReadonlyArray<Fault>, commit: number, at: FaultPoint): void => {
  for (const fault of faults) {
    if (fault.commit !== commit || fault.at !== at) continue
    if ('delayMs' in fault) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, fault.delayMs)
    else if ('kill' in fault) killProcess()
    else throw Object.assign(new Error(`${fault.error}: ${messages[fault.error]}`), { code: fault.error })
  }
}

/** Whether this commit's sync is to fail: then it must not really happen. */
export const failsSync = (faults: ReadonlyArray<Fault>, commit: number): boolean => {
  return faults.some((fault) => fault.commit === commit && fault.at === 'sync' && !('delayMs' in fault))
}

const killProcess = (): never => {
  process.kill(process.pid, 'SIGKILL')
  // The signal is on its way; nothing more may happen in this thread meanwhile.
  for (;;) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0)
}
