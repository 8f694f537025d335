/** The class stays with the flow of execution, whichever way that takes. */
import { AsyncResource } from 'node:async_hooks'
import { EventEmitter, EventEmitterAsyncResource, once } from 'node:events'
import { Readable, Transform, Writable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { setTimeout as sleep } from 'node:timers/promises'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { type PriorityClass, priorityClasses } from '../../machines/index.ts'
import { currentAmbient, insidePermit, noAmbient, parentIn, withAmbient } from '../../src/carrier/ambient.ts'
import { currentPriority, withPriority } from '../../src/carrier/with-priority.ts'
import { openPool } from '../fan-out/fixture.ts'
import { runs } from '../properties/runs.ts'

describe('withPriority', () => {
  it('is replaced as a whole by an inner one, and restored', () => {
    expect(currentPriority()).toBe(null)
    withPriority('interactive', () => {
      withPriority('background_ingestion', () => {
        withPriority('hydration', () => expect(currentPriority()).toBe('hydration'))
        expect(currentPriority()).toBe('background_ingestion')
      })
      expect(currentPriority()).toBe('interactive')
    })
    expect(currentPriority()).toBe(null)
  })

  it('untags with null', () => {
    withPriority('background_ingestion', () => {
      expect(withPriority(null, currentPriority)).toBe(null)
      expect(currentPriority()).toBe('background_ingestion')
    })
  })

  it('is restored after a throw and a rejection, and answers what the function does', async () => {
    const fails = (): never => {
      throw new Error('bad')
    }
    expect(() => withPriority('interactive', fails)).toThrow('bad')
    expect(currentPriority()).toBe(null)
    await expect(withPriority('interactive', async () => fails())).rejects.toThrow('bad')
    expect(currentPriority()).toBe(null)
    expect(withPriority('interactive', () => 42)).toBe(42)
  })

  it('keeps the permit that is held', () => {
    const permit = { scope: 'a', callId: '1' }
    withAmbient({ priorityClass: 'interactive', permit }, () =>
      withPriority(null, () => expect(currentAmbient()).toEqual({ priorityClass: null, permit })),
    )
  })
})

const read = async (): Promise<PriorityClass | null> => currentPriority()

/** Each answers the class that it sees at the far end. */
const ways: ReadonlyArray<[string, () => Promise<PriorityClass | null>]> = [
  ['await', () => Promise.resolve().then(read)],
  [
    'await of a promise that others settle',
    async () => {
      await withPriority(null, () => sleep(0))
      return currentPriority()
    },
  ],
  ['setTimeout', () => new Promise((resolve) => setTimeout(() => resolve(currentPriority()), 0))],
  ['setImmediate', () => new Promise((resolve) => setImmediate(() => resolve(currentPriority())))],
  ['process.nextTick', () => new Promise((resolve) => process.nextTick(() => resolve(currentPriority())))],
  ['queueMicrotask', () => new Promise((resolve) => queueMicrotask(() => resolve(currentPriority())))],
  ['timers/promises', () => sleep(0).then(read)],
  [
    'setInterval',
    () =>
      new Promise((resolve) => {
        const timer = setInterval(() => {
          clearInterval(timer)
          resolve(currentPriority())
        }, 1)
      }),
  ],
  [
    'an async iterator',
    async () => {
      const chunks = (async function* () {
        await sleep(0)
        yield currentPriority()
      })()
      for await (const seen of chunks) return seen
      return null
    },
  ],
  [
    'the callbacks of a pipeline',
    async () => {
      const seen: Array<PriorityClass | null> = []
      await pipeline(
        Readable.from(['a', 'b']),
        new Transform({
          transform: (chunk, _, done) => {
            seen.push(currentPriority())
            setImmediate(done, null, chunk)
          },
          flush: (done) => {
            seen.push(currentPriority())
            done()
          },
        }),
        async function* (source) {
          for await (const chunk of source) {
            seen.push(currentPriority())
            yield chunk
          }
        },
        new Writable({
          write: (_chunk, _encoding, done) => {
            seen.push(currentPriority())
            done()
          },
        }),
      )
      expect(new Set(seen).size).toBe(1)
      expect(seen.length).toBeGreaterThanOrEqual(7)
      return seen[0]!
    },
  ],
  [
    'a web stream',
    async () => {
      const stream = new ReadableStream<PriorityClass | null>({
        pull: async (controller) => {
          await sleep(0)
          controller.enqueue(currentPriority())
          controller.close()
        },
      })
      const { value } = await stream.getReader().read()
      return value ?? null
    },
  ],
  [
    'an emitter whose listener is bound',
    () => {
      const emitter = new EventEmitter()
      const heard = new Promise<PriorityClass | null>((resolve) =>
        emitter.on(
          'data',
          AsyncResource.bind(() => resolve(currentPriority())),
        ),
      )
      withPriority('hydration', () => emitter.emit('data'))
      return heard
    },
  ],
  [
    'an emitter that is an AsyncResource of its own',
    () => {
      const emitter = new EventEmitterAsyncResource({ name: 'answers' })
      const heard = new Promise<PriorityClass | null>((resolve) =>
        emitter.on('data', () => resolve(currentPriority())),
      )
      withPriority('hydration', () => emitter.emit('data'))
      return heard
    },
  ],
  [
    'the wait for an event',
    async () => {
      const emitter = new EventEmitter()
      withPriority('hydration', () => setImmediate(() => emitter.emit('data')))
      await once(emitter, 'data')
      return currentPriority()
    },
  ],
  [
    'a pool whose callbacks run in the flow of whoever came first',
    () => {
      const queue: Array<() => void> = []
      const answer = new Promise<PriorityClass | null>((resolve) =>
        queue.push(AsyncResource.bind(() => resolve(currentPriority()))),
      )
      withPriority('hydration', () => queue.pop()!())
      return answer
    },
  ],
]

describe('the class survives', () => {
  it.each(ways)('%s', async (_, way) => {
    for (const priorityClass of [...priorityClasses, null]) {
      expect(await withPriority(priorityClass, way)).toBe(priorityClass)
    }
  })

  it('many flows at once, each with its own', async () => {
    const flows = fc.array(
      fc.record({
        priorityClass: fc.constantFrom(null, ...priorityClasses),
        way: fc.constantFrom(...ways.map(([, way]) => way)),
      }),
      { maxLength: 20 },
    )
    await fc.assert(
      fc.asyncProperty(flows, async (all) => {
        const seen = await Promise.all(all.map(({ priorityClass, way }) => withPriority(priorityClass, way)))
        expect(seen).toEqual(all.map(({ priorityClass }) => priorityClass))
      }),
      { numRuns: runs(50) },
    )
  })
})

describe('a call', () => {
  it.each([
    [null, 'primary'],
    ['interactive', 'primary'],
    ['hydration', 'primary'],
    ['background_ingestion', 'auxiliary'],
  ] as const)('made under %s goes by the %s lane', async (priorityClass, lane) => {
    const scope = await openPool({ capacity: 2 })
    const held = await withPriority(priorityClass, async () => {
      await sleep(0)
      return scope.run({}, async () => ({ lane: scope.status[lane].inFlight, ambient: currentAmbient() }))
    })
    expect(held.lane).toBe(1)
    expect(held.ambient.priorityClass).toBe(priorityClass ?? 'orchestration')
    expect(held.ambient.permit).toMatchObject({ scope: 'pool' })
  })

  it('states its class over the ambient one, and its dispatch runs under it', async () => {
    const scope = await openPool({ capacity: 2 })
    const inner = withPriority('background_ingestion', () =>
      scope.run({ priorityClass: 'interactive' }, async () => currentPriority()),
    )
    expect(await inner).toBe('interactive')
  })
})

describe('the permits around a dispatch', () => {
  const inside = (outer: Parameters<typeof insidePermit>[0], scope: string, callId: string) =>
    insidePermit(outer, { scope, callId, priorityClass: 'orchestration' }, { isOver: false })
  const outermost = inside(noAmbient, 'provider', 'one')
  const between = inside(outermost, 'tools', 'two')

  it.each([
    ['none held', noAmbient, 'provider', null],
    ['its own scope', outermost, 'provider', 'one'],
    ['another scope', outermost, 'tools', null],
    ['the scope in between', between, 'tools', 'two'],
    ['its own scope beyond another', between, 'provider', 'one'],
    ['the innermost of two in one scope', inside(between, 'provider', 'three'), 'provider', 'three'],
  ] as const)('give a parent to a call: %s', (_, ambient, scope, parent) => {
    expect(parentIn(ambient, scope)).toBe(parent)
  })
})
