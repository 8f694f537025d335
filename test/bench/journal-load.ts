/** Load on a real host over a real journal: calls in a closed loop, at any depth. */
import { type Call, parsePolicy } from '../../machines/index.ts'
import { Kernel } from '../../src/host/kernel.ts'
import { startScope } from '../../src/host/scope-actor.ts'
import type { ScopeRunner } from '../../src/host/scope-runner.ts'
import { systemClock } from '../../src/index.ts'
import type { StoredEntry } from '../../src/journal/journal.ts'
import { openSqliteJournal } from '../../src/journal/sqlite.ts'
import { JournalWriter } from '../../src/journal/writer.ts'

export const patient = {
  capacity: 8,
  reserve: 0,
  auxiliaryPendingTimeoutMs: 30 * 86_400_000,
  unclaimedExpiryMs: 30 * 86_400_000,
} as const

export const callOf = (id: string, principal = 'tenant'): Call => ({
  id,
  turnId: null,
  lane: 'auxiliary',
  priorityClass: 'background_ingestion',
  principal,
  inputTokens: 1_200,
  outputTokens: 300,
  deadlineAt: null,
  dependsOn: [],
  parentId: null,
})

export const openOn = async (path: string): Promise<Kernel> =>
  Kernel.open({ journal: await openSqliteJournal(path), journalPath: path, clock: systemClock })

/**
 * Runs `calls` calls and keeps `waiting` of them waiting in each scope while enough are left. Returns
 * microseconds per call.
 */
export const saturate = async (
  runners: ReadonlyArray<ScopeRunner>,
  { waiting, calls, tag }: { readonly waiting: number; readonly calls: number; readonly tag: string },
): Promise<number> => {
  let asked = 0
  let ended = 0
  const done = Promise.withResolvers<void>()
  const ask = (runner: ScopeRunner): void => {
    const id = `${tag}-${asked++}`
    runner.submit(callOf(id, `tenant-${asked % 4}`), {
      dispatch: 'withGrant',
      stays: false,
      granted: (permit) => {
        permit.settle({ outcome: 'completed', usage: { inputTokens: 1_200, outputTokens: 280 } })
        ended += 1
        if (asked < calls) ask(runner)
        if (ended === calls) done.resolve()
      },
      refused: done.reject,
    })
  }
  const beganMs = performance.now()
  for (const runner of runners) for (let n = 0; n < waiting; n += 1) ask(runner)
  await done.promise
  return ((performance.now() - beganMs) * 1_000) / calls
}

/** One call alone: microseconds until its permit, and its dispatch, are durable. Answers once its settlement is, too. */
export const admitAlone = async (kernel: Kernel, runner: ScopeRunner, id: string): Promise<number> => {
  const beganMs = performance.now()
  const permit = await new Promise<{ settle: (as: { outcome: 'completed' }) => unknown }>(
    (granted, refused) =>
      runner.submit(callOf(id), { dispatch: 'withGrant', stays: false, granted, refused }),
  )
  const us = (performance.now() - beganMs) * 1_000
  const settled = new Promise<void>((resolve) => {
    const stop = kernel.observe(({ event }) => {
      if (event.type !== 'call.settled') return
      stop()
      resolve()
    })
  })
  permit.settle({ outcome: 'completed' })
  await settled
  return us
}

/** Puts calls of up to a thousand principals into a scope's queue that never moves: every place is taken. */
export const fill = async (runner: ScopeRunner, waiting: number): Promise<void> => {
  for (let n = 0; n < waiting; n += 1) {
    runner.tell({ type: 'call.submitted', call: callOf(`deep-${n}`, `tenant-${n % 1_000}`) })
    if (n % 2_000 === 0) await new Promise((resolve) => setImmediate(resolve))
  }
}

/** Writes a journal of so many events without a checkpoint, as a host would have. */
export const writeHistory = (path: string, events: number, entriesPerCommit = 1_000): void => {
  const writer = new JournalWriter(path, {
    leaseMs: 60_000,
    keepEntriesMs: Number.MAX_SAFE_INTEGER,
    faults: [],
  })
  const actor = startScope('long')
  const startAt = Date.now() - events - 1_000
  let batch: StoredEntry[] = []
  let position = 0
  const tell = (event: object): void => {
    const at = startAt + position
    actor.send({ ...event, at } as never)
    const { decisions } = actor.getSnapshot().context.scope
    batch.push({
      position: ++position,
      scope: 'long',
      at,
      record: JSON.stringify({ event: { ...event, at }, decisions }),
    })
    if (batch.length < entriesPerCommit) return
    writer.append([batch])
    batch = []
  }
  tell({ type: 'policy.changed', policy: parsePolicy(patient) })
  for (let n = 0; position < events; n += 1) {
    const callId = `call-${n}`
    tell({ type: 'call.submitted', call: callOf(callId, `tenant-${n % 4}`) })
    tell({ type: 'call.dispatched', callId })
    tell({
      type: 'call.settled',
      callId,
      outcome: 'completed',
      usage: { inputTokens: 1_200, outputTokens: 280 },
    })
  }
  if (batch.length > 0) writer.append([batch])
  writer.close()
}
