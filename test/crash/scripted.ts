/**
 * A short run that is killed at one exact point, in a process of its own. Arguments: journal,
 * provider URL, a tag for its ids, and the point: a fault of the journal's thread (`write`, `sync`,
 * `told`, at the n-th commit) or a moment of the caller's thread at its n-th occurrence.
 */
import { flushCompileCache } from 'node:module'
import { openHost } from '../../src/host/host.ts'
import type { FaultPoint } from '../../src/journal/faults.ts'
import type { Journal } from '../../src/journal/journal.ts'
import { openSqliteJournal } from '../../src/journal/sqlite.ts'
import { type ScriptedCall, script, scriptedPolicy, send } from './script.ts'

const [path, provider, tag, point, nth] = process.argv.slice(2) as [string, string, string, string, string]

const isFault = (name: string): name is FaultPoint => ['write', 'sync', 'told'].includes(name)
const faults = isFault(point) ? [{ commit: Number(nth), at: point, kill: true } as const] : []

// A killed process would not write its compile cache, so it is written now.
flushCompileCache()

const seen = new Map<string, number>()
/** Dies here, when this is the point. */
const reach = (name: string): void => {
  const count = (seen.get(name) ?? 0) + 1
  seen.set(name, count)
  if (name !== point || count !== Number(nth)) return
  process.kill(process.pid, 'SIGKILL')
  // The signal is on its way; nothing more may happen meanwhile.
  for (;;) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0)
}

/** The journal, with the moments around it. */
const watched = (journal: Journal): Journal => ({
  ...journal,
  append: (entry) => {
    reach('event')
    return journal.append(entry)
  },
  checkpoint: (checkpoint) => {
    reach('checkpoint')
    return journal.checkpoint(checkpoint)
  },
  checkpoints: journal.checkpoints,
  read: journal.read,
  close: journal.close,
  listen: (listener) =>
    journal.listen({
      failed: listener.failed,
      durable: (through) => {
        reach('durable')
        listener.durable(through)
        reach('carried out')
      },
    }),
})

const host = await openHost({ journal: watched(await openSqliteJournal(path, { faults })) })
const scope = host.scope({ provider: 'anthropic', credential: 'k1', model: 'm' }, scriptedPolicy)

const run = (call: ScriptedCall) =>
  scope.run({ ...call, id: `${tag}-${call.id}` }, async (permit) => {
    reach('permit')
    // The request has left, and is on its way.
    const timer = setTimeout(() => reach('sent'), 5)
    const value = await send(provider, permit).finally(() => clearTimeout(timer))
    reach('answered')
    return value
  })

await script(run)
await host.close()
process.stdout.write('done\n')
