/** A call between its grant and its end: on each face, for every throw, abort and close. */
import { Cause, Effect, Exit, Fiber } from 'effect'
import { describe, expect, it } from 'vitest'
import { kernelOf, runnerOf } from '../../src/host/internal.ts'
import { effectScope } from '../../src/host/service.ts'
import {
  Host,
  type HostOpenError,
  type LaneHost,
  lanedFetch,
  ManualClock,
  openHost,
  type Permit,
} from '../../src/index.ts'
import type { StoredEntry } from '../../src/journal/journal.ts'
import { openMemoryJournal } from '../../src/journal/memory.ts'
import { accelerationError, Bench, settle } from './bench.ts'

const caught = <A>(promise: Promise<A>): Promise<unknown> =>
  promise.then(
    () => 'no error',
    (error) => error,
  )

const typesOf = (entries: ReadonlyArray<StoredEntry>): ReadonlyArray<string> =>
  entries.map(({ record }) => JSON.parse(record).event.type as string)

describe('a call that is refused', () => {
  it('keeps its waiter: one submission however often it goes back, and each grant is its dispatch', async () => {
    const journal = openMemoryJournal()
    const bench = await Bench.open({ maxAttempts: 3 }, journal)
    await bench.primary('p')
    await bench.fail('p', accelerationError())
    await bench.pass(60_000)
    await bench.fail('p', accelerationError())
    await bench.pass(300_000)
    await bench.finish('p', 'answer')
    expect(bench.outcomes.get('p')).toBe('answer')
    expect(typesOf(journal.survivors().entries).filter((type) => type !== 'clock.woke')).toEqual([
      'policy.changed',
      'call.submitted',
      'call.settled',
      'call.settled',
      'call.settled',
    ])
    const explained = await bench.host.explain('p')
    expect(explained?.lines.filter((line) => line.includes('submitted:'))).toHaveLength(1)
    expect(explained?.lines.filter((line) => line.includes('sent to the provider'))).toEqual([
      expect.stringMatching(/^3 times between \S+ \S+ UTC and \S+ \S+ UTC: sent to the provider$/),
    ])
    expect(explained?.lines.length).toBeLessThanOrEqual(10)
    await bench.host.close()
  })

  it('ends with the error of a scope that will not have it again, and with the provider word as its cause', async () => {
    const bench = await Bench.open({ maxAttempts: 1 })
    const error = accelerationError()
    await bench.primary('p')
    await bench.fail('p', error)
    expect(bench.outcomes.get('p')).toMatchObject({ _tag: 'AttemptsExhausted', cause: error })
    await bench.host.close()
  })
})

describe('a preempted call whose owner leaves before the permit is given back', () => {
  const faces: ReadonlyArray<
    readonly [string, (bench: Bench, signal: AbortSignal, stubborn: Promise<unknown>) => Promise<unknown>]
  > = [
    [
      'run',
      ({ scope }, signal, stubborn) => scope.run({ id: 'a', lane: 'auxiliary', signal }, () => stubborn),
    ],
    [
      'admit',
      async ({ scope }, signal, stubborn) => {
        const permit = await scope.admit({ id: 'a', lane: 'auxiliary', signal })
        await permit.dispatched()
        await stubborn.catch(() => permit.settle({ outcome: 'cancelled' }))
      },
    ],
    [
      'Effect',
      ({ scope }, signal, stubborn) =>
        Effect.runPromise(
          effectScope(runnerOf(scope)).run({ id: 'a', lane: 'auxiliary' }, () =>
            Effect.uninterruptible(Effect.promise(() => stubborn.catch(() => {}))),
          ),
          { signal },
        ),
    ],
    [
      'lanedFetch',
      ({ scope }, signal, stubborn) =>
        lanedFetch(scope, {
          call: () => ({ id: 'a', lane: 'auxiliary', signal }),
          fetch: () => stubborn as Promise<Response>,
        })('http://provider/v1/messages', { method: 'POST', body: '{"model":"m"}' }),
    ],
  ]

  it.each(faces)('ends, and nobody holds its place (%s)', async (_, ask) => {
    const bench = await Bench.open({ inFlight: 'cancel', graceMs: 5_000, capacity: 2 })
    const { promise, reject } = Promise.withResolvers<unknown>()
    const leaving = new AbortController()
    const over = caught(ask(bench, leaving.signal, promise))
    await settle()
    await bench.primary('p')
    expect(bench.running).toEqual([])
    leaving.abort(new Error('gone'))
    await settle()
    reject(new Error('stopped'))
    await over
    await settle()
    expect(bench.running).toEqual(['p'])
    await bench.finish('p')
    await bench.pass(2_000)
    expect(bench.scope.status.auxiliary).toMatchObject({ waiting: 0, inFlight: 0 })
    await bench.host.close()
  })
})

describe('a place is free again', () => {
  const throwing = {
    usage: () => {
      throw new Error('cannot read usage')
    },
    evidence: () => {
      throw new Error('cannot read evidence')
    },
  }

  it('when a reader throws: the answer and the error are the caller’s, and the failure is counted', async () => {
    await using host = await openHost()
    const scope = host.scope('pool', { capacity: 1 })
    expect(await scope.run({}, () => 'answer', throwing)).toBe('answer')
    const own = new Error('its own')
    expect(await caught(scope.run({}, () => Promise.reject(own), throwing))).toBe(own)
    const hostile = Object.defineProperty({}, 'usage', {
      get: () => {
        throw new Error('a getter')
      },
    })
    expect(await scope.run({}, () => hostile)).toBe(hostile)
    expect(scope.status.primary.inFlight).toBe(0)
    expect(scope.readerFailures).toBe(3)
  })

  it('when the function throws before its first promise, or what it gives is none', async () => {
    await using host = await openHost()
    const scope = host.scope('pool', { capacity: 1 })
    const own = new Error('at once')
    const throws = (): Promise<number> => {
      throw own
    }
    expect(await caught(scope.run({}, throws))).toBe(own)
    expect(await scope.run({}, () => 42)).toBe(42)
    expect(scope.status.primary.inFlight).toBe(0)
    expect(scope.status.counters.completed).toBe(1)
  })

  it('when the function of an Effect throws: a defect, and the place is free', async () => {
    await using host = await openHost()
    const scope = effectScope(runnerOf(host.scope('pool', { capacity: 1 })))
    const own = new Error('at once')
    const exit = await Effect.runPromiseExit(
      scope.run({}, () => {
        throw own
      }),
    )
    expect(Exit.isFailure(exit) && Cause.squash(exit.cause)).toBe(own)
    expect(host.scope('pool').status.primary.inFlight).toBe(0)
  })

  it('when the function settled its permit itself: an answer ends the call, an error has it run again', async () => {
    const bench = await Bench.open({ capacity: 1 })
    const evidence = {
      kind: 'overloaded',
      scope: 'model',
      retryAfterMs: null,
      retryable: true,
      facts: {},
    } as const
    let runs = 0
    const again = bench.scope.run({ id: 'again' }, (permit) => {
      runs += 1
      if (runs > 1) return 'second'
      permit.settle({ outcome: 'throttled', evidence })
      throw new Error('refused')
    })
    await settle()
    await bench.pass(60_000)
    expect(await again).toBe('second')
    const answered = bench.scope.run({ id: 'answered' }, (permit) => {
      permit.settle({ outcome: 'throttled', evidence })
      return 'first'
    })
    expect(await answered).toBe('first')
    expect(bench.scope.status.primary).toMatchObject({ waiting: 0, inFlight: 0 })
    await bench.host.close()
  })
})

describe('a second caller of the same id', () => {
  it('whose signal is aborted leaves the first alone, waiting or running, and hears its own reason', async () => {
    await using host = await openHost()
    const scope = host.scope('pool', { capacity: 1 })
    const finish = Promise.withResolvers<string>()
    const running = scope.run({ id: 'runs' }, (permit) => {
      permit.signal.addEventListener('abort', () => finish.reject(permit.signal.reason))
      return finish.promise
    })
    const waiting = scope.run({ id: 'waits' }, () => 'waited')
    await settle()
    for (const id of ['runs', 'waits']) {
      const reason = new Error(`left ${id}`)
      expect(await caught(scope.run({ id, signal: AbortSignal.abort(reason) }, () => 'never'))).toBe(reason)
      expect(await caught(scope.admit({ id, signal: AbortSignal.abort(reason) }))).toBe(reason)
      const late = new AbortController()
      expect(await caught(scope.run({ id, signal: late.signal }, () => 'never'))).toMatchObject({
        _tag: 'DuplicateCall',
      })
      // Refused, it owns nothing that its signal could end.
      late.abort(reason)
      await settle()
    }
    finish.resolve('done')
    expect(await running).toBe('done')
    expect(await waiting).toBe('waited')
  })

  it('is not hit by a late abort of the first, interrupted or answered', async () => {
    await using host = await openHost()
    const scope = host.scope('pool', { capacity: 1 })
    const first = new AbortController()
    const held = await scope.admit({ id: 'held' })
    const interrupted = Effect.runFork(
      effectScope(runnerOf(scope)).run({ id: 'same', signal: first.signal }, () => Effect.succeed(1)),
    )
    await settle()
    await Effect.runPromise(Fiber.interrupt(interrupted))
    const second = scope.run({ id: 'same' }, () => 'second')
    first.abort(new Error('late'))
    held.settle({ outcome: 'completed' })
    expect(await second).toBe('second')
  })
})

describe('on the Effect face', () => {
  it('an aborted signal is an interruption: before, while it waits, and while it runs', async () => {
    await using host = await openHost()
    const plain = host.scope('pool', { capacity: 1 })
    const scope = effectScope(runnerOf(plain))
    const before = await Effect.runPromiseExit(scope.run({ signal: AbortSignal.abort() }, () => Effect.void))
    const admitted = await Effect.runPromiseExit(Effect.scoped(scope.admit({ signal: AbortSignal.abort() })))
    const running = new AbortController()
    const waiting = new AbortController()
    let wasInterrupted = false
    const runs = Effect.runPromiseExit(
      scope.run({ signal: running.signal }, () =>
        Effect.onInterrupt(Effect.never, () =>
          Effect.sync(() => {
            wasInterrupted = true
          }),
        ),
      ),
    )
    await settle()
    const waits = Effect.runPromiseExit(scope.run({ signal: waiting.signal }, () => Effect.never))
    await settle()
    waiting.abort()
    running.abort()
    for (const exit of [before, admitted, await waits, await runs]) {
      expect(Exit.hasInterrupts(exit as Exit.Exit<unknown, unknown>)).toBe(true)
      expect(Exit.hasDies(exit as Exit.Exit<unknown, unknown>)).toBe(false)
    }
    expect(wasInterrupted).toBe(true)
    expect(plain.status.primary).toMatchObject({ waiting: 0, inFlight: 0 })
  })

  it('a permit that waits is interruptible, and its place is free then', async () => {
    await using host = await openHost()
    const plain = host.scope('pool', { capacity: 1 })
    const held = await plain.admit({})
    const fiber = Effect.runFork(Effect.scoped(effectScope(runnerOf(plain)).admit({})))
    await settle()
    expect(plain.status.primary.waiting).toBe(1)
    await Effect.runPromise(Fiber.interrupt(fiber))
    expect(plain.status.primary.waiting).toBe(0)
    held.settle({ outcome: 'completed' })
  })
})

describe('a settlement that comes twice', () => {
  it('does not settle the next permit of the same call, and is counted', async () => {
    const bench = await Bench.open({ inFlight: 'cancel', capacity: 2 })
    const permits: Permit[] = []
    const never = new Promise<never>(() => {})
    const over = caught(
      bench.scope.run({ id: 'a', lane: 'auxiliary' }, (permit) => {
        permits.push(permit)
        return permits.length > 1
          ? never
          : new Promise((_, reject) =>
              permit.signal.addEventListener('abort', () => reject(permit.signal.reason)),
            )
      }),
    )
    await settle()
    await bench.primary('p')
    await bench.finish('p')
    await bench.pass(1_000)
    expect(permits).toHaveLength(2)
    permits[0]!.settle({ outcome: 'cancelled' })
    expect(bench.scope.status.auxiliary.inFlight).toBe(1)
    expect(bench.scope.status.counters.lateSettlements).toBe(1)
    permits[1]!.settle({ outcome: 'completed' })
    await bench.host.close()
    void over
  })
})

describe('when the host closes', () => {
  it('a call that runs keeps its own error and its own answer', async () => {
    const bench = await Bench.open({ capacity: 2 })
    await bench.primary('fails')
    await bench.primary('answers')
    const [fails, answers] = [bench.dispatch('fails'), bench.dispatch('answers')]
    await bench.host.close()
    const own = accelerationError()
    await fails.fail(own)
    await answers.finish('answer')
    expect(bench.outcomes.get('fails')).toBe(own)
    expect(bench.outcomes.get('answers')).toBe('answer')
  })

  it('a waiting call, and one that was granted and not handed over, is taken up by the next host and sent once', async () => {
    const journal = openMemoryJournal()
    const bench = await Bench.open({ capacity: 1 }, journal)
    await bench.primary('runs')
    await bench.primary('waits')
    const closed = bench.host.close({ graceMs: 1_000 })
    // The end of this call frees the place for a call whose owner has been released.
    await bench.finish('runs')
    await closed
    const second = openMemoryJournal({ history: journal.survivors() })
    const first = await Bench.open({ capacity: 2 }, second)
    const onItsWay = first.scope.run({ id: 'on its way' }, () => 'never')
    const closedAtOnce = first.host.close()
    expect(await caught(onItsWay)).toMatchObject({ _tag: 'HostClosed' })
    await closedAtOnce
    const left = openMemoryJournal({ history: second.survivors() })
    const next = await Bench.open({ capacity: 1 }, left)
    await next.primary('waits')
    await next.primary('on its way')
    await next.finish('waits', 'sent')
    await next.finish('on its way', 'sent too')
    expect([next.outcomes.get('waits'), next.outcomes.get('on its way')]).toEqual(['sent', 'sent too'])
    await next.host.close()
  })

  it('every reader of watch ends, in order, after the last observation; a later one at once', async () => {
    const host = await openHost()
    const scope = host.scope('pool')
    const watch = host.watch()
    const [first, second] = [watch.next(), watch.next()]
    await scope.run({ id: 'c' }, () => 1)
    expect([(await first).value?.event.type, (await second).value?.event.type]).toEqual([
      'call.submitted',
      'call.settled',
    ])
    const pending = [watch.next(), watch.next()]
    await host.close()
    expect(await Promise.all(pending)).toEqual([
      { done: true, value: undefined },
      { done: true, value: undefined },
    ])
    expect(await host.watch().next()).toEqual({ done: true, value: undefined })
  })

  it('an observer that throws harms neither its scope nor the next observer', async () => {
    await using host = await openHost()
    const heard: string[] = []
    kernelOf(host).observe(() => {
      throw new Error('a bad observer')
    })
    kernelOf(host).observe(({ event }) => heard.push(event.type))
    expect(await host.scope('pool').run({}, () => 'answer')).toBe('answer')
    await settle()
    expect(heard).toEqual(['policy.changed', 'call.submitted', 'call.settled'])
    expect(kernelOf(host).observerFailures).toBe(3)
  })
})

describe('when the journal fails, every promise that was given out settles', () => {
  type Ask = (
    host: LaneHost,
    clock: ManualClock,
    /** From now on no commit ends. */
    stick: () => void,
  ) => Promise<ReadonlyArray<Promise<unknown>>>

  const cases: ReadonlyArray<readonly [string, Ask]> = [
    [
      'a call whose id has ended',
      async (host, _, stick) => {
        const scope = host.scope('pool')
        await scope.run({ id: 'c' }, () => 1)
        stick()
        return [scope.run({ id: 'c' }, () => 1), scope.admit({ id: 'c' })]
      },
    ],
    [
      'a call that is too large',
      async (host, _, stick) => {
        const scope = host.scope('pool', { limits: { inputTokensPerMinute: 10 } })
        await settle()
        stick()
        return [scope.run({ inputTokens: 1_000 }, () => 1)]
      },
    ],
    [
      'a call that is shed',
      async (host, _, stick) => {
        const scope = host.scope('pool', {
          capacity: 2,
          inFlight: 'tolerate',
          hold: 'whileWaiting',
          qos: {},
        })
        await settle()
        stick()
        const request = { priorityClass: 'background_ingestion', principal: 'a' } as const
        return [1, 2, 3, 4].map(() => scope.run(request, () => 1))
      },
    ],
    [
      'the dispatch of a permit',
      async (host, _, stick) => {
        const permit = await host.scope('pool').admit({})
        stick()
        return [permit.dispatched()]
      },
    ],
    [
      'calls that expire, waiting and running',
      async (host, clock, stick) => {
        const scope = host.scope('pool', {
          capacity: 1,
          primaryActiveTimeoutMs: 100,
          primaryPendingTimeoutMs: 100,
        })
        const asked = [scope.run({}, () => new Promise(() => {})), scope.run({}, () => 1)]
        await settle()
        stick()
        clock.advance(200)
        return asked
      },
    ],
    [
      'a call that waits, one on its way, one that is refused and one that is taken away',
      async (host, _, stick) => {
        const scope = host.scope('pool', { capacity: 2 })
        const refused = Promise.withResolvers<number>()
        const first = scope.run({}, () => refused.promise)
        await settle()
        stick()
        const asked = [first, scope.run({}, () => 1), scope.run({ id: 'w' }, () => 1), scope.run({}, () => 1)]
        scope.withdraw('w')
        refused.reject(accelerationError())
        return asked
      },
    ],
  ]

  it.each(cases)('%s', async (_, ask) => {
    const clock = new ManualClock(1_000_000)
    let isStuck = false
    const schedule = (sync: () => void): void => {
      if (!isStuck) queueMicrotask(sync)
    }
    const journal = openMemoryJournal({ schedule })
    const host = await openHost({ journal, clock })
    const asked = await ask(host, clock, () => {
      isStuck = true
    })
    const ends = Promise.allSettled(asked)
    await settle()
    journal.fail('commit', new Error('disk full'))
    const told = await Promise.race([ends, settle(20).then(() => 'somebody never heard' as const)])
    expect(told).not.toBe('somebody never heard')
    // Nothing was granted by a commit that never ended.
    for (const end of await ends) expect(end).toMatchObject({ status: 'rejected' })
  })
})

describe('the layer of a host', () => {
  it('fails with the error that says why it does not open', async () => {
    const layer = Host.layer({ journal: '/nowhere/at/all/lanes.db' })
    const error: HostOpenError = await Effect.runPromise(Effect.flip(Effect.provide(Effect.void, layer)))
    expect(error._tag).toBe('JournalUnavailable')
  })
})
