/**
 * The needs of an embedding in a real host, points 1 to 7: each test has the number of its point. Points 8 to
 * 14 are in the file beside.
 */
import { describe, expect, it } from 'vitest'
import { withCall } from '../../src/clients/call-context.ts'
import { LaneRefusal } from '../../src/clients/membrane-adapter.ts'
import { settle } from '../host/bench.ts'
import { caught, dispatches, item, noTools, stage, submitted, tooMany } from './host-composition-stage.ts'

describe('1. a turn is not a dispatch', () => {
  it('a turn with one tool round makes two, under one turn id', async () => {
    const { provider, composition, seen } = await stage()
    const turn = composition.turn('t1', 'hello', noTools)
    await settle()
    provider.of('hello').answer({ toolCalls: ['search'] })
    await settle()
    provider.of('hello/2').token('done')
    provider.of('hello/2').answer()
    expect(await turn).toBe('done')
    const calls = submitted(seen)
    expect(calls.map(({ turnId }) => turnId)).toEqual(['t1', 't1'])
    expect(new Set(calls.map(({ id }) => id)).size).toBe(2)
  })

  it('a complete() with two 429s makes three, each through admission: a pending primary goes in between', async () => {
    const { provider, composition, seen, pass } = await stage()
    const work = composition.work('r1', item('compress'))
    await settle()
    const turn = composition.turn('t1', 'hello', noTools)
    await settle()
    provider.of('compress').fail(tooMany())
    await settle()
    expect(provider.log).toEqual(['compress', 'hello'])
    provider.of('hello').answer()
    await turn
    await pass(1_000)
    provider.of('compress').fail(tooMany())
    await pass(1_000)
    provider.of('compress').answer()
    await work
    expect(provider.log).toEqual(['compress', 'hello', 'compress', 'compress'])
    expect(dispatches(seen)).toBe(4)
  })
})

describe('2. the lane is explicit', () => {
  it.each([
    ['a primary that does not stream', 'primary', 'complete'],
    ['an auxiliary that streams', 'auxiliary', 'stream'],
  ] as const)('%s is what its caller says', async (_, lane, method) => {
    const { provider, composition, seen } = await stage()
    const call = withCall({ lane }, () =>
      method === 'complete'
        ? composition.adapter.complete({ model: 'opus', prompt: 'x' })
        : composition.adapter.stream({ model: 'opus', prompt: 'x' }, { onChunk: () => {} }),
    )
    await settle()
    provider.of('x').answer()
    await call
    expect(submitted(seen)[0]).toMatchObject({ lane })
  })

  it('travels through awaits, timers and the stream of the layer above', async () => {
    const { provider, composition, seen } = await stage()
    const work = withCall({ lane: 'auxiliary', principal: 'r7' }, async () => {
      await new Promise((resolve) => setImmediate(resolve))
      const events = composition.membrane.streamYielding({ model: 'opus', prompt: 'x' })
      for await (const event of events) if (event.type === 'complete') return event.response.text
      return null
    })
    await settle(8)
    provider.of('x').answer()
    expect(await work).toBe('ok')
    expect(submitted(seen)[0]).toMatchObject({ lane: 'auxiliary', principal: 'r7' })
  })
})

describe('3. calls are parked inside the adapter', () => {
  it('a refusal of the provider is not seen by the layer above: it retries nothing', async () => {
    const { provider, composition, pass } = await stage()
    const work = composition.work('r1', item('compress'))
    await settle()
    for (let refusal = 0; refusal < 7; refusal += 1) {
      provider.of('compress').fail(tooMany())
      // Nothing is stated: background waits longer each time, for eight minutes at the longest.
      await pass(10 * 60_000)
    }
    provider.of('compress').answer()
    expect((await work)?.text).toBe('ok')
    expect(composition.membrane.retries).toBe(0)
  })

  it('a refusal of the lanes passes the layer above once, with its marker', async () => {
    const { composition, pass } = await stage({ auxiliaryPendingTimeoutMs: 5_000 })
    composition.scope.beginTurn('t1')
    const error = caught(
      withCall({ lane: 'auxiliary' }, () => composition.membrane.complete({ model: 'opus', prompt: 'late' })),
    )
    await settle()
    await pass(5_000)
    expect(await error).toBeInstanceOf(LaneRefusal)
    expect(composition.membrane.retries).toBe(0)
  })
})

describe("4. errors have the host's own shape", () => {
  it.each([
    ['PendingTimeout', { auxiliaryPendingTimeoutMs: 5_000 }, 'server'],
    ['ExceedsLimit', { limits: { inputTokensPerMinute: 1 } }, 'server'],
    ['HostClosed', {}, 'abort'],
  ] as const)(
    '%s is neither a rate limit nor an invalid request, in type or in words',
    async (tag, policy, type) => {
      const { host, composition, pass } = await stage(policy)
      composition.scope.beginTurn('t1')
      const error = caught(
        withCall({ lane: 'auxiliary' }, () =>
          composition.adapter.complete({ model: 'opus', prompt: 'late' }),
        ),
      )
      await settle()
      if (tag === 'HostClosed') await host.close()
      else await pass(5_000)
      const refusal = (await error) as unknown as LaneRefusal
      expect(refusal).toMatchObject({ tag, type, retryable: false, providerAdmission: 'refused' })
      expect(refusal.message).not.toMatch(/rate|invalid/i)
      expect(refusal.rawError.message).toContain(refusal.callId)
    },
  )

  it('three refusals of the lanes in a row poison no history', async () => {
    const { composition, pass } = await stage({ auxiliaryPendingTimeoutMs: 5_000 })
    composition.scope.beginTurn('t1')
    for (let turn = 0; turn < 3; turn += 1) {
      const work = composition.work('r1', item('merge'))
      await settle()
      await pass(5_000)
      await work
    }
    expect(composition.poison.get('r1') ?? 0).toBe(0)
  })

  it("the adapter's own errors pass untouched", async () => {
    const { provider, composition } = await stage()
    const work = caught(composition.work('r1', item('bad')))
    await settle()
    const own = { type: 'invalid_request', retryable: false, httpStatus: 400 }
    provider.of('bad').fail(own)
    expect(await work).toBe(own)
  })
})

describe("5. the adapter's promise settles the permit", () => {
  it('not the end of the iterator: a reader that stops holds no place', async () => {
    const { provider, composition } = await stage()
    const stream = composition.membrane.streamYielding({ model: 'opus', prompt: 'x' })
    const reading = withCall({ lane: 'primary' }, () => stream[Symbol.asyncIterator]().next())
    await settle()
    provider.of('x').token('a')
    provider.of('x').answer()
    expect((await reading).value).toEqual({ type: 'tokens', text: 'a' })
    expect(composition.scope.status.primary.inFlight).toBe(0)
    expect(composition.scope.status.counters.completed).toBe(1)
  })

  it('once: an answer after the permit was taken away is counted by nobody', async () => {
    const { provider, composition, pass } = await stage({ auxiliaryActiveTimeoutMs: 5_000 })
    provider.deaf = true
    const work = caught(composition.work('r1', item('slow')))
    await settle()
    await pass(5_000)
    await work
    provider.of('slow').answer()
    await settle()
    expect(composition.scope.status.counters).toMatchObject({ completed: 0, expired: 1 })
    expect(composition.scope.status.auxiliary.inFlight).toBe(0)
  })
})

describe('6. abort goes both ways', () => {
  it("the caller's signal takes a parked call out of its queue", async () => {
    const { composition } = await stage()
    composition.scope.beginTurn('t1')
    const stop = new AbortController()
    const work = caught(composition.work('r1', item('merge'), stop.signal))
    await settle()
    expect(composition.scope.status.auxiliary.waiting).toBe(1)
    stop.abort(new Error('enough'))
    await work
    expect(composition.scope.status.auxiliary.waiting).toBe(0)
  })

  it("the caller's signal reaches the provider of a call that runs", async () => {
    const { provider, composition } = await stage()
    const stop = new AbortController()
    const work = caught(composition.work('r1', item('merge'), stop.signal))
    await settle()
    stop.abort(new Error('enough'))
    await work
    expect(provider.of('merge').signal?.aborted).toBe(true)
    expect(composition.scope.status.auxiliary.inFlight).toBe(0)
  })

  it("the permit's signal reaches the provider, and the call goes again from its place", async () => {
    const { provider, composition } = await stage({ inFlight: 'cancel' })
    const work = composition.work('r1', item('merge'))
    await settle()
    const turn = composition.turn('t1', 'hello', noTools, { betweenRounds: 'yield' })
    await settle()
    expect(provider.sent[0]?.signal?.aborted).toBe(true)
    provider.of('hello').answer()
    await turn
    await settle()
    provider.of('merge').answer()
    expect((await work)?.text).toBe('ok')
    expect(provider.log).toEqual(['merge', 'hello', 'merge'])
    expect(composition.membrane.retries).toBe(0)
  })

  it('a stream of which its reader has a part is not begun again behind its back', async () => {
    const { provider, composition } = await stage({ inFlight: 'cancel' })
    const events: string[] = []
    const reading = withCall({ lane: 'auxiliary' }, async () => {
      for await (const { type } of composition.membrane.streamYielding({ model: 'opus', prompt: 'story' }))
        events.push(type)
    })
    await settle()
    provider.of('story').token('once')
    const turn = composition.turn('t1', 'hello', noTools, { betweenRounds: 'yield' })
    await settle()
    await reading
    provider.of('hello').answer()
    await turn
    await settle()
    expect(events).toEqual(['error'])
    expect(provider.log).toEqual(['story', 'hello'])
    expect(composition.scope.status.auxiliary).toMatchObject({ waiting: 0, inFlight: 0 })
  })
})

describe('7. admitted is durable before the request leaves', () => {
  it('and so is the dispatch: what a restart finds is never less than what was sent', async () => {
    const { provider, composition, seen } = await stage()
    const atRequest: string[] = []
    const onRequest = () => {
      for (const { event, decisions: made } of seen)
        atRequest.push(
          event.type,
          ...made.map(({ verdict, dispatched }) => `${verdict}, dispatched: ${dispatched}`),
        )
    }
    const call = composition.adapter.complete({ model: 'opus', prompt: 'x' }, { onRequest })
    await settle()
    provider.of('x').answer()
    await call
    expect(atRequest).toEqual(['policy.changed', 'call.submitted', 'admit, dispatched: true'])
  })
})
