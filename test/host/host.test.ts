import { Effect, Fiber, Stream } from 'effect'
import { describe, expect, it } from 'vitest'
import { kernelOf } from '../../src/host/internal.ts'
import {
  Host,
  HostClosed,
  InvalidInput,
  ManualClock,
  type Observation,
  openHost,
  Preempted,
} from '../../src/index.ts'
import { accelerationError, Bench, settle } from './bench.ts'

describe('a permit', () => {
  it('is settled once; a second settlement does nothing and is counted', async () => {
    await using host = await openHost()
    const scope = host.scope('worker-pool')
    const permit = await scope.admit({ id: 'c' })
    expect(permit.settle({ outcome: 'completed' })).toBe('ended')
    expect(permit.settle({ outcome: 'failed' })).toBe('ended')
    expect(scope.status.counters).toMatchObject({ completed: 1, lateSettlements: 1 })
  })

  it('left without a settlement by `await using` counts as cancelled, and its place is free', async () => {
    await using host = await openHost()
    const scope = host.scope('worker-pool', { capacity: 1 })
    {
      await using permit = await scope.admit({ id: 'c' })
      await permit.dispatched()
      expect(scope.status.primary.inFlight).toBe(1)
    }
    expect(scope.status.primary.inFlight).toBe(0)
  })

  it('of a bare holder is taken back with Preempted, and the same id gets its place again', async () => {
    const bench = await Bench.open({ inFlight: 'cancel' })
    const first = await bench.scope.admit({ id: 'aux', lane: 'auxiliary' })
    await first.dispatched()
    await bench.primary('p')
    expect(first.signal.reason).toBeInstanceOf(Preempted)
    expect(first.settle({ outcome: 'cancelled' })).toBe('waiting')
    await settle()
    const again = bench.scope.admit({ id: 'aux', lane: 'auxiliary' })
    await bench.finish('p')
    expect((await again).attempt).toBe(2)
    await bench.host.close()
  })

  it('is refused to a second owner of the same id', async () => {
    await using host = await openHost()
    const scope = host.scope('worker-pool')
    await scope.admit({ id: 'c' })
    await expect(scope.admit({ id: 'c' })).rejects.toMatchObject({
      _tag: 'DuplicateCall',
      scope: 'worker-pool',
      callId: 'c',
    })
  })
})

describe('a host', () => {
  it('refuses a bad call, policy or scope with field, range and value, and stays as it was', async () => {
    await using host = await openHost()
    const scope = host.scope('worker-pool')
    await expect(scope.run({ inputTokens: -1 }, async () => 1)).rejects.toThrow(
      'call.inputTokens: expected an integer in [0, 1000000000], got -1',
    )
    expect(() => host.scope('worker-pool', { capacity: 0 })).toThrow(
      'policy.capacity: expected an integer in [1, 65536], got 0',
    )
    expect(() => host.scope({ provider: 'a/b', credential: 'k' })).toThrow(InvalidInput)
    expect(scope.status.counters.submitted).toBe(0)
  })

  it('tells the owner of a waiting call that an operator withdrew it', async () => {
    const bench = await Bench.open({ capacity: 1 })
    await bench.primary('runs')
    await bench.primary('waits')
    bench.scope.withdraw('waits')
    await settle()
    expect(bench.outcomes.get('waits')).toMatchObject({ _tag: 'Withdrawn', callId: 'waits' })
    await bench.host.close()
  })

  it('takes patience and grace of no length at their word', async () => {
    const bench = await Bench.open({ inFlight: 'settle', afterPatience: 'cancel', patienceMs: 0 })
    await bench.auxiliary('a')
    await bench.primary('p')
    expect(bench.log).toEqual(['a', 'p'])
    await bench.host.close()
  })

  it('releases every waiter when it closes, and takes nobody afterwards', async () => {
    const bench = await Bench.open({ capacity: 1 })
    await bench.primary('runs')
    await bench.primary('waits')
    await bench.host.close()
    await settle()
    expect(bench.outcomes.get('waits')).toBeInstanceOf(HostClosed)
    await expect(bench.scope.run({ id: 'late' }, async () => 1)).rejects.toBeInstanceOf(HostClosed)
  })

  it('waits for permits that are out, at most graceMs', async () => {
    const bench = await Bench.open()
    await bench.primary('runs')
    let isClosed = false
    const closed = bench.host.close({ graceMs: 1_000 }).then(() => {
      isClosed = true
    })
    await settle()
    expect(isClosed).toBe(false)
    await bench.finish('runs', 'done')
    await closed
    expect(bench.outcomes.get('runs')).toBe('done')
  })

  it('tells every event with its decisions, once durable, in order; a reader that leaves is forgotten', async () => {
    await using host = await openHost()
    const scope = host.scope('worker-pool')
    const seen: Observation[] = []
    {
      using watch = host.watch()
      await scope.run({ id: 'c' }, async () => 'done')
      for (let count = 0; count < 2; count += 1) seen.push((await watch.next()).value as Observation)
    }
    expect(seen.map(({ event }) => event.type)).toEqual(['call.submitted', 'call.settled'])
    expect(seen[0]!.decisions).toMatchObject([
      { callId: 'c', verdict: 'admit', reason: 'primary', dispatched: true },
    ])
    expect(seen.map(({ position }) => position)).toEqual(
      [...seen.map(({ position }) => position)].sort((a, b) => a - b),
    )
  })

  it('tells an observer what comes from now on, also of calls that came before', async () => {
    await using host = await openHost()
    const runner = kernelOf(host).scope('worker-pool', { capacity: 1 })
    const heard: string[] = []
    runner.tell({ type: 'turn.began', turnId: 'before', betweenRounds: 'yield' })
    // The journal has not acknowledged it yet.
    kernelOf(host).observe(({ event }) => heard.push(event.type))
    runner.tell({ type: 'turn.ended', turnId: 'before' })
    expect(heard).toEqual([])
    await settle()
    expect(heard).toEqual(['turn.ended'])
  })

  it('explains why a call waits, and what became of it', async () => {
    const bench = await Bench.open()
    await bench.auxiliary('compression', { principal: 'residence-1' })
    await bench.primary('conversation')
    const waiting = await bench.host.explain('conversation')
    expect(waiting).toMatchObject({ standing: 'waiting' })
    expect(waiting!.lines[0]).toContain('auxiliaries in flight have to settle first')
    await bench.finish('compression')
    await bench.fail('conversation', accelerationError())
    await bench.pass(60_000)
    await bench.finish('conversation')
    const ended = (await bench.host.explain('conversation'))!
    expect(ended.standing).toBe('ended')
    expect(ended.lines.join('\n')).toMatch(
      /submitted: primary.*\n.*deferred.*\n.*released.*\n.*sent to the provider\n.*the provider said acceleration/,
    )
    expect(await bench.host.explain('nobody')).toBeNull()
    await bench.host.close()
  })

  it('spreads a wait that speaks of the whole credential to its sibling scopes, and to no other', async () => {
    const bench = await Bench.open()
    const sibling = bench.host.scope({ provider: 'anthropic', credential: 'k1', model: 'other' })
    const stranger = bench.host.scope({ provider: 'anthropic', credential: 'k2', model: 'm' })
    await bench.primary('p')
    const headers = { 'retry-after': '30' }
    await bench.fail(
      'p',
      Object.assign(new Error('429'), {
        status: 429,
        headers,
        error: {
          type: 'error',
          error: {
            type: 'rate_limit_error',
            message: 'Number of concurrent connections has exceeded your rate limit',
          },
        },
      }),
    )
    expect(sibling.status.wait).toMatchObject({ kind: 'concurrency', untilMs: 1_030_000 })
    expect(stranger.status.wait).toBeNull()
    await bench.host.close()
  })
})

describe('the Effect face', () => {
  const clock = new ManualClock(1_000)
  const layer = Host.layer({ clock })

  it('runs an effect with a permit, and a failure of its own passes through', async () => {
    const program = Effect.gen(function* () {
      const host = yield* Host
      const scope = host.scope('worker-pool')
      const result = yield* scope.run({ id: 'a' }, (permit) => Effect.succeed(permit.callId))
      const failed = yield* Effect.flip(scope.run({ id: 'b' }, () => Effect.fail('no' as const)))
      return [result, failed, (yield* scope.status).counters.granted]
    })
    expect(await Effect.runPromise(Effect.provide(program, layer))).toEqual(['a', 'no', 2])
  })

  it('interruption withdraws a waiting call and cancels a running one', async () => {
    const program = Effect.gen(function* () {
      const host = yield* Host
      const scope = host.scope('worker-pool', { capacity: 1 })
      const running = yield* Effect.forkChild(scope.run({ id: 'running' }, () => Effect.never))
      yield* Effect.promise(() => settle())
      const waiting = yield* Effect.forkChild(scope.run({ id: 'waiting' }, () => Effect.never))
      yield* Effect.promise(() => settle())
      expect((yield* scope.status).primary).toMatchObject({ inFlight: 1, waiting: 1 })
      yield* Fiber.interrupt(waiting)
      expect((yield* scope.status).primary).toMatchObject({ inFlight: 1, waiting: 0 })
      yield* Fiber.interrupt(running)
      expect((yield* scope.status).primary).toMatchObject({ inFlight: 0, waiting: 0 })
    })
    await Effect.runPromise(Effect.provide(program, layer))
  })

  it('a nested run in the same scope borrows its parent place', async () => {
    const program = Effect.gen(function* () {
      const scope = (yield* Host).scope('worker-pool', { capacity: 1 })
      return yield* scope.run({ id: 'outer' }, () => scope.run({ id: 'inner' }, () => Effect.succeed('done')))
    })
    expect(await Effect.runPromise(Effect.provide(program, layer))).toBe('done')
  })

  it('streams what it decides', async () => {
    const program = Effect.gen(function* () {
      const host = yield* Host
      const seen = yield* Effect.forkChild(Stream.runCollect(Stream.take(host.watch, 3)))
      yield* Effect.promise(() => settle())
      yield* host.scope('worker-pool').run({ id: 'a' }, () => Effect.void)
      return (yield* Fiber.join(seen)).map(({ event }) => event.type)
    })
    expect(await Effect.runPromise(Effect.provide(program, layer))).toEqual([
      'policy.changed',
      'call.submitted',
      'call.settled',
    ])
  })
})
