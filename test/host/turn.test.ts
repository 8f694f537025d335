/** A turn that ends with its function, and is seen while it lasts. */
import { Effect, Fiber } from 'effect'
import PQueue from 'p-queue'
import { describe, expect, it, onTestFinished } from 'vitest'
import { kernelOf } from '../../src/host/internal.ts'
import {
  bound,
  type Call,
  Host,
  InvalidInput,
  lanedFetch,
  ManualClock,
  openHost,
  type PolicyInput,
  Withdrawn,
  withPriority,
} from '../../src/index.ts'

const endless = async function* (): AsyncGenerator<number> {
  for (let n = 0; ; n += 1) yield n
}

const opened = async (policy: PolicyInput = {}) => {
  const clock = new ManualClock(1_000)
  const host = await openHost({ clock })
  onTestFinished(() => host.close())
  const calls: Array<Call> = []
  kernelOf(host).observe(({ event }) => {
    if (event.type === 'call.submitted') calls.push(event.call)
  })
  return { clock, host, calls, scope: host.scope('s', policy) }
}

describe('a turn', () => {
  it('lasts as long as its function, also where that throws, and its own calls go', async () => {
    const { scope, calls } = await opened()
    const kept = await scope.turn(
      async (turn) => {
        expect(scope.status.turns).toEqual([{ turnId: 't', ageMs: 0 }])
        return scope.run(turn.call({ lane: 'auxiliary' }), () => 'own')
      },
      { id: 't' },
    )
    expect(kept).toBe('own')
    expect(calls).toMatchObject([{ turnId: 't', lane: 'auxiliary' }])
    expect(scope.status.turns).toEqual([])
    await expect(scope.turn(() => Promise.reject(new Error('mine')))).rejects.toThrow('mine')
    expect(scope.status.turns).toEqual([])
  })

  it('that was forgotten is seen with its age, the oldest first, sixteen at most', async () => {
    const { scope, clock } = await opened()
    for (let n = 0; n < 20; n += 1) {
      scope.beginTurn(`t${n}`)
      clock.advance(1_000)
    }
    const { turns } = scope.status
    expect(turns).toHaveLength(16)
    expect(turns[0]).toEqual({ turnId: 't0', ageMs: 20_000 })
    expect(turns[15]).toEqual({ turnId: 't15', ageMs: 5_000 })
  })

  it.each(['', 'x'.repeat(257)])('has no id of the wrong length', async (id) => {
    const { scope } = await opened()
    await expect(scope.turn(() => 1, { id })).rejects.toThrow(InvalidInput)
  })
})

it('an Effect scope has turns, promote, withdraw and learn, and is one for lanedFetch', async () => {
  const program = Effect.gen(function* () {
    const scope = (yield* Host).scope('openai/k/m')
    const during = yield* Effect.scoped(
      Effect.gen(function* () {
        const { id } = yield* scope.turn()
        const background = (callId: string) =>
          Effect.forkChild(scope.run({ id: callId, lane: 'auxiliary' }, () => Effect.succeed(callId)))
        const promoted = yield* background('promoted')
        const withdrawn = yield* background('withdrawn')
        yield* Effect.yieldNow
        const { turns } = yield* scope.status
        yield* scope.promote('promoted')
        yield* scope.withdraw('withdrawn')
        return {
          isShown: turns.some(({ turnId }) => turnId === id),
          promoted: yield* Fiber.join(promoted),
          withdrawn: yield* Effect.flip(Fiber.join(withdrawn)),
        }
      }),
    )
    yield* scope.learn([
      { dimension: 'input-tokens-per-minute', limit: 5_000, remaining: null, resetAtMs: null },
    ])
    const send = async () => new Response('{}', { headers: { 'content-type': 'application/json' } })
    const fetch = lanedFetch(scope, { fetch: send as typeof globalThis.fetch, call: () => ({ id: 'f' }) })
    const response = yield* Effect.promise(() => fetch('http://127.0.0.1:1/', { method: 'POST', body: '{}' }))
    const after = yield* scope.status
    return { during, callId: response.headers.get('x-rightofway-call-id'), after }
  })
  const { during, callId, after } = await Effect.runPromise(Effect.provide(program, Host.layer()))
  expect(during).toMatchObject({ isShown: true, promoted: 'promoted' })
  expect(during.withdrawn).toBeInstanceOf(Withdrawn)
  expect(callId).toBe('f')
  expect(after.turns).toEqual([])
  expect(after.inputTokenLimit).toBe(5_000)
})

describe('a pool that starts a task when another one ends', () => {
  const priorities = async (wrap: <A>(fn: () => A) => () => A): Promise<ReadonlyArray<Partial<Call>>> => {
    const { scope, calls } = await opened({ capacity: 4 })
    const queue = new PQueue({ concurrency: 1 })
    const task = (id: string) => wrap(() => scope.run({ id }, async () => {}))
    const first = withPriority('background_ingestion', () => queue.add(task('first')))
    const second = withPriority('interactive', () => queue.add(task('second')))
    await Promise.all([first, second])
    return calls.map(({ id, priorityClass, parentId }) => ({ id, priorityClass, parentId }))
  }

  it('runs a bound task in the surroundings in which it was made', async () => {
    expect(await priorities(bound)).toEqual([
      { id: 'first', priorityClass: 'background_ingestion', parentId: null },
      { id: 'second', priorityClass: 'interactive', parentId: null },
    ])
  })

  it('never lets a task borrow the place of a run that has ended', async () => {
    const { scope, calls } = await opened({ capacity: 4 })
    // Its permit is held on, for its stream, after its function has ended.
    const held = await scope.run({ id: 'held' }, () => {
      const later = bound(() => scope.run({ id: 'after-held' }, () => {}))
      return Object.assign(endless(), { later })
    })
    expect(scope.status.primary.inFlight).toBe(1)
    await held.later()
    const outer = scope.run({ id: 'outer' }, async () => {
      await scope.run({ id: 'inside' }, () => {})
      return bound(() => scope.run({ id: 'after-outer' }, () => {}))
    })
    await (await outer)()
    expect(calls.map(({ id, parentId }) => [id, parentId])).toEqual([
      ['held', null],
      ['after-held', null],
      ['outer', null],
      ['inside', 'outer'],
      ['after-outer', null],
    ])
  })
})
