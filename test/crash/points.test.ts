/** SIGKILL at every point between event, write, sync, permit, dispatch and settlement: enumerated, not sampled. */
import { spawn } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type Emulator, startEmulator } from '../../src/emulator/index.ts'
import { openHost } from '../../src/index.ts'
import { checkJournal } from '../../src/journal/check.ts'
import { scriptedCalls, scriptedPolicy, send } from './script.ts'

let folder: string
let emulator: Emulator

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'rightofway-points-'))
  emulator = await startEmulator({ rules: [], latency: { firstTokenMs: 25, perOutputTokenMs: 1 } })
})

afterAll(async () => {
  await emulator.close()
  rmSync(folder, { recursive: true, force: true })
})

/** Runs the script in a process; answers whether it was killed. */
const runAndKill = (journal: string, tag: string, point: string, nth: number): Promise<boolean> => {
  const program = join(import.meta.dirname, 'scripted.ts')
  const args = ['--disable-warning=ExperimentalWarning', program, journal, emulator.url, tag, point, `${nth}`]
  // The test starts a hundred processes: each reuses the code that another has compiled.
  const env = { ...process.env, NODE_COMPILE_CACHE: join(folder, 'compiled') }
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'ignore', 'inherit'], env })
  return new Promise((resolve, reject) => {
    child.on('close', (code, signal) => {
      if (code === 0 || signal === 'SIGKILL') resolve(signal === 'SIGKILL')
      else reject(new Error(`${tag} ended with ${code ?? signal}`))
    })
  })
}

/** A second host on the same journal; every owner comes back for its call. */
const comeBack = async (journal: string, tag: string): Promise<ReadonlyMap<string, string>> => {
  const host = await openHost({ journal })
  const scope = host.scope({ provider: 'anthropic', credential: 'k1', model: 'm' }, scriptedPolicy)
  const outcomes = await Promise.all(
    scriptedCalls.map(async (call): Promise<[string, string]> => {
      const id = `${tag}-${call.id}`
      try {
        await scope.run({ ...call, id }, (permit) => send(emulator.url, permit))
        return [id, 'completed']
      } catch (error) {
        return [id, (error as { _tag?: string })._tag ?? String(error)]
      }
    }),
  )
  await host.close()
  return new Map(outcomes)
}

const countOf = (id: string, kind: 'accepted' | 'completed'): number =>
  emulator.log().filter((entry) => entry.callId === id && entry.kind === kind).length

/** The provider's log is the judge. */
const judge = (outcomes: ReadonlyMap<string, string>): void => {
  for (const [id, outcome] of outcomes) {
    const accepted = countOf(id, 'accepted')
    expect(accepted, `${id} (${outcome}) was accepted ${accepted} times`).toBeLessThanOrEqual(1)
    expect(['completed', 'OutcomeUnknown', 'AlreadySettled'], `${id} ended as ${outcome}`).toContain(outcome)
    if (outcome !== 'OutcomeUnknown') expect(accepted, `${id} ${outcome}, but was never sent`).toBe(1)
  }
}

/** In the journal's thread, and around it in the caller's. */
const points = [
  'event',
  'write',
  'sync',
  'told',
  'durable',
  'carried out',
  'permit',
  'sent',
  'answered',
  'checkpoint',
]

describe('a host that is killed', () => {
  it.concurrent.each(points)(
    'at %s, at every time it comes, sends nothing twice and loses nothing',
    { timeout: 180_000 },
    async (point) => {
      let killed = 0
      for (let nth = 1, again = true; again; nth += 1) {
        const tag = `${point.replace(' ', '-')}-${nth}`
        const journal = join(folder, `${tag}.db`)
        again = await runAndKill(journal, tag, point, nth)
        if (again) killed += 1
        judge(await comeBack(journal, tag))
        expect(checkJournal(journal).problems).toEqual([])
      }
      // Four calls, one of them sent twice; how their entries share commits is up to the disk.
      const least = { checkpoint: 1, answered: 4, permit: 5, sent: 4 }[point] ?? 6
      expect(killed).toBeGreaterThanOrEqual(least)
    },
  )
})
