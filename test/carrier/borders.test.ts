/** The class across the borders of a thread and of a process, real ones. */
import { execFile } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { Worker } from 'node:worker_threads'
import fc from 'fast-check'
import { describe, expect, it, onTestFinished } from 'vitest'
import { priorityClasses } from '../../machines/index.ts'
import { currentAmbient, withAmbient } from '../../src/carrier/ambient.ts'
import { carry, priorityEnv, withCarried } from '../../src/carrier/carry.ts'
import { carrierCounters } from '../../src/carrier/counters.ts'
import { currentPriority, withPriority } from '../../src/carrier/with-priority.ts'

const script = fileURLToPath(new URL('./starter.ts', import.meta.url))

const startProcess = async (env: NodeJS.ProcessEnv): Promise<unknown> => {
  const { stdout } = await promisify(execFile)(process.execPath, [script], { env })
  return JSON.parse(stdout)
}

const startWorker = async (options: { env?: NodeJS.ProcessEnv; workerData?: unknown }) => {
  const worker = new Worker(script, options)
  onTestFinished(async () => void (await worker.terminate()))
  const [report] = (await once(worker, 'message')) as [unknown]
  return { worker, report }
}

const { RIGHTOFWAY_PRIORITY: _, ...clean } = process.env

describe('a child process', () => {
  it.each([
    ['interactive', 'interactive'],
    ['background_ingestion', 'background_ingestion'],
    [null, null],
  ] as const)('spawned under %s starts with %s', async (priorityClass, started) => {
    const report = await withPriority(priorityClass, () => startProcess(priorityEnv()))
    expect(report).toMatchObject({ started, unknown: 0 })
  })

  it.each([
    ['hydration', 'hydration', 0],
    [' Background_Ingestion ', 'background_ingestion', 0],
    ['', null, 0],
    ['urgent', null, 1],
  ] as const)('whose environment says %j starts with %s', async (value, started, unknown) => {
    const report = await startProcess({ ...clean, RIGHTOFWAY_PRIORITY: value })
    expect(report).toMatchObject({ started, unknown })
  })

  it("is given its parent's environment with the class, or without one that was there before", () => {
    const base = { PATH: '/bin', RIGHTOFWAY_PRIORITY: 'interactive' }
    expect(withPriority('hydration', () => priorityEnv(base))).toEqual({
      PATH: '/bin',
      RIGHTOFWAY_PRIORITY: 'hydration',
    })
    expect(priorityEnv(base)).toEqual({ PATH: '/bin' })
    expect(base.RIGHTOFWAY_PRIORITY).toBe('interactive')
  })
})

describe('a worker thread', () => {
  it.each(['interactive', 'background_ingestion', null] as const)(
    'started with the environment of %s runs under it',
    async (priorityClass) => {
      const env = withPriority(priorityClass, () => priorityEnv())
      expect((await startWorker({ env })).report).toMatchObject({ started: priorityClass })
    },
  )

  it('is given the class by workerData', async () => {
    const { report } = await startWorker({
      env: clean,
      workerData: withPriority('background_ingestion', carry),
    })
    expect(report).toMatchObject({ started: null, given: 'background_ingestion' })
  })

  it('runs each message under the class that came with it, and sends it back', async () => {
    const { worker } = await startWorker({ env: clean })
    for (const priorityClass of [...priorityClasses, null]) {
      const answered = once(worker, 'message')
      withPriority(priorityClass, () => worker.postMessage(carry()))
      const [{ seen, back }] = (await answered) as [{ seen: unknown; back: unknown }]
      expect(seen).toBe(priorityClass)
      expect(withCarried(back, currentPriority)).toBe(priorityClass)
    }
  })
})

describe('what is carried', () => {
  it('is plain data that holds the class and the permits', () => {
    const ambient = {
      priorityClass: 'hydration',
      permit: { scope: 'a', callId: '1', outer: { scope: 'b', callId: '2', outer: null } },
    } as const
    const carried: unknown = JSON.parse(JSON.stringify(withAmbient(ambient, carry)))
    expect(withCarried(carried, currentAmbient)).toEqual(ambient)
  })

  it.each([
    ['nothing', undefined],
    ['null', null],
    ['a text', 'interactive'],
    ['an empty object', {}],
    ['a permit without a call', { priorityClass: null, permit: { scope: 'a' } }],
  ])('counts as untagged, without a permit, when it is %s', (_name, carried) => {
    withPriority('interactive', () =>
      expect(withCarried(carried, currentAmbient)).toEqual({ priorityClass: null, permit: null }),
    )
  })

  it('is counted when its class is unknown', () => {
    const before = carrierCounters().unknownPriorities
    expect(withCarried({ priorityClass: 'urgent' }, currentPriority)).toBe(null)
    expect(withCarried({ priorityClass: 7 }, currentPriority)).toBe(null)
    expect(carrierCounters().unknownPriorities - before).toBe(2)
  })

  it('is read from any value', () => {
    fc.assert(
      fc.property(fc.jsonValue(), (carried) => {
        const { priorityClass } = withCarried(carried, currentAmbient)
        expect([null, ...priorityClasses]).toContain(priorityClass)
      }),
    )
  })
})
