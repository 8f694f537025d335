/** The needs of an embedding in a real host, points 8 to 14, and the decorated adapter itself. */
import { readFileSync, writeFileSync } from 'node:fs'
import { mkdtemp } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import { withCall } from '../../src/clients/call-context.ts'
import {
  cacheApart,
  cacheIncluded,
  Deferred,
  LaneRefusal,
  lanedAdapter,
} from '../../src/clients/membrane-adapter.ts'
import { openHost } from '../../src/index.ts'
import { settle } from '../host/bench.ts'
import { ScriptedAdapter } from './host-composition-membrane.ts'
import { caught, decisions, item, key, noTools, stage, tooMany } from './host-composition-stage.ts'

describe('8. a turn says what happens between its rounds', () => {
  it.each([
    ['hold', ['hello', 'hello/2', 'compress']],
    ['yield', ['hello', 'compress', 'hello/2']],
  ] as const)('%s', async (betweenRounds, order) => {
    const { provider, composition } = await stage({ inFlight: 'tolerate' })
    const rounds = Promise.withResolvers<void>()
    const turn = composition.turn('t1', 'hello', () => rounds.promise, { betweenRounds })
    await settle()
    const work = composition.work('r1', item('compress'))
    await settle()
    provider.of('hello').answer({ toolCalls: ['search'] })
    await settle()
    rounds.resolve()
    await settle()
    provider.of('hello/2').answer()
    await turn
    await settle()
    provider.of('compress').answer()
    await work
    expect(provider.log).toEqual(order)
  })
})

describe('9. background work that a turn waits for', () => {
  it('made inside the turn goes through the gate that the turn holds: no deadlock', async () => {
    const { provider, composition } = await stage()
    const turn = composition.turn('t1', 'hello', async () => {
      // Carries the turn's id, for it is made in the turn.
      const summary = withCall({ lane: 'auxiliary' }, () =>
        composition.membrane.complete({ model: 'opus', prompt: 'summary' }),
      )
      await settle()
      provider.of('summary').answer()
      await summary
    })
    await settle()
    provider.of('hello').answer({ toolCalls: ['compact'] })
    await settle(12)
    provider.of('hello/2').answer()
    await turn
    expect(provider.log).toEqual(['hello', 'summary', 'hello/2'])
  })

  it('named by the primary is let through before it', async () => {
    const { provider, composition } = await stage()
    composition.scope.beginTurn('other')
    const prepared = composition.scope.run({ id: 'prepare', lane: 'auxiliary' }, () =>
      provider.complete({ model: 'opus', prompt: 'prepare' }),
    )
    await settle()
    expect(provider.log).toEqual([])
    const turn = composition.turn('t1', 'hello', noTools, { dependsOn: ['prepare'] })
    await settle()
    expect(provider.log).toEqual(['prepare'])
    provider.of('prepare').answer()
    await prepared
    await settle()
    provider.of('hello').answer()
    await turn
    composition.scope.endTurn('other')
  })
})

describe('10. estimates are injected, and corrected by what was used', () => {
  it('down and up', async () => {
    const { provider, composition } = await stage()
    const work = composition.work('r1', item('x'.repeat(500)))
    await settle()
    expect(composition.scope.status.recentInputTokens).toBe(500)
    provider.sent[0]?.answer({
      usage: { inputTokens: 80, outputTokens: 5, cacheCreationTokens: 20, cacheReadTokens: 4_000 },
    })
    await work
    expect(composition.scope.status.recentInputTokens).toBe(100)
  })

  it.each([
    ['apart from the cache', cacheApart, 120],
    ['with the cache in it', cacheIncluded, 100],
  ])('the convention is the provider s own: input %s', (_, convention, inputTokens) => {
    const usage = { inputTokens: 100, outputTokens: 7, cacheCreationTokens: 20, cacheReadTokens: 50 }
    expect(convention(usage)).toEqual({ inputTokens, outputTokens: 7 })
  })
})

describe('11. refusals are read, not guessed', () => {
  const sdkError = (message: string, headers: Record<string, string> = {}) =>
    Object.assign(new Error('429'), {
      status: 429,
      headers,
      error: { type: 'error', error: { type: 'rate_limit_error', message } },
    })

  it('the present limit and the next are taken from the text, below the shape of the host', async () => {
    const { provider, composition } = await stage()
    const turn = composition.turn('t1', 'hello', noTools)
    await settle()
    const text =
      'This request would exceed your organization’s maximum usage increase rate for input tokens per minute. Your current limit is 58,276 input tokens per minute, and will increase to 68,276 at the next minute boundary.'
    provider.of('hello').fail(tooMany({ rawError: sdkError(text) }))
    await settle()
    expect(composition.scope.status.lastRefusal).toMatchObject({
      statedLimit: 58_276,
      statedNextLimit: 68_276,
    })
    // It is far smaller than the stated limit, and `pacingBaseMs` is 0: it was sent again at once.
    provider.of('hello').answer()
    await turn
    expect(provider.log).toEqual(['hello', 'hello'])
  })

  it.each([
    ['negative', '-5'],
    ['no number', 'soon'],
    ['hours', '277403'],
  ])('a retry-after that is %s is survived', async (_, value) => {
    const { provider, composition, pass } = await stage()
    const stop = new AbortController()
    const work = caught(composition.work('r1', item('x'), stop.signal))
    await settle()
    provider.of('x').fail(tooMany({ rawError: sdkError('rate limited', { 'retry-after': value }) }))
    await pass(60_000)
    const running = composition.scope.status.auxiliary.inFlight
    expect(running).toBe(value === '277403' ? 0 : 1)
    stop.abort(new Error('enough'))
    await work
    expect(composition.scope.status.auxiliary).toMatchObject({ waiting: 0, inFlight: 0 })
  })
})

describe('12. the store is pluggable and durable', () => {
  const file = async () => join(await mkdtemp(join(tmpdir(), 'composition-')), 'lanes.db')

  it('a host that comes back knows what it had sent', async () => {
    const journal = await file()
    const first = await stage({}, { journal })
    const scope = first.composition.scope
    void caught(
      scope.run({ id: 'sent', lane: 'auxiliary' }, () =>
        first.provider.complete({ model: 'opus', prompt: 'sent' }),
      ),
    )
    await expect.poll(() => first.provider.log).toEqual(['sent'])
    await first.host.close()
    const second = await stage({}, { journal })
    const error = await caught(
      second.composition.scope.run({ id: 'sent', lane: 'auxiliary' }, async () => 'again'),
    )
    expect(error).toMatchObject({ _tag: 'OutcomeUnknown' })
  })

  it('history that cannot be read fails closed: no host, no calls', async () => {
    const journal = await file()
    const first = await stage({}, { journal })
    await first.composition.scope.run({ lane: 'auxiliary' }, async () => 'done')
    await first.host.close()
    const bytes = readFileSync(journal)
    writeFileSync(journal, Buffer.concat([Buffer.from('not a journal at all'), bytes.subarray(20)]))
    await expect(openHost({ journal })).rejects.toThrow(/lanes\.db/)
  })
})

describe('13. nothing leaks', () => {
  it('no key and no content is in what the host keeps or tells', async () => {
    const { host, provider, composition, seen } = await stage()
    const work = composition.work('r1', item('a secret diary'))
    await settle()
    provider.of('a secret diary').answer({ text: 'a secret answer' })
    await work
    const told = JSON.stringify([seen, host.status(), composition.scope.name])
    expect(told).not.toContain(key)
    expect(told).not.toContain('secret')
  })

  it('close releases every waiter', async () => {
    const { host, composition } = await stage()
    composition.scope.beginTurn('t1')
    const waiting = [1, 2, 3].map((number) => caught(composition.work(`r${number}`, item(`w${number}`))))
    await settle()
    await host.close()
    expect((await Promise.all(waiting)).every((result) => result === null)).toBe(true)
  })

  it('an idle host keeps no process alive, a call that waits does, and no longer than it waits', async () => {
    const host = await openHost()
    onTestFinished(() => host.close())
    const timers = () => process.getActiveResourcesInfo().filter((kind) => kind === 'Timeout').length
    const before = timers()
    const stop = new AbortController()
    const scope = host.scope('pool', { capacity: 1 })
    scope.beginTurn('t')
    const waiting = scope.run({ lane: 'auxiliary', signal: stop.signal }, async () => 'never')
    await settle()
    expect(scope.status.auxiliary.waiting).toBe(1)
    expect(timers()).toBe(before + 1)
    stop.abort(new Error('enough'))
    await expect(waiting).rejects.toThrow('enough')
    expect(timers()).toBe(before)
  })

  it('tokens cost nothing: a stream of thousands is as many events as one of one', async () => {
    const { provider, composition, seen } = await stage()
    const call = composition.adapter.stream({ model: 'opus', prompt: 'x' }, { onChunk: () => {} })
    await settle()
    const before = seen.length
    for (let token = 0; token < 5_000; token += 1) provider.of('x').token('t')
    await settle()
    expect(seen.length - before).toBe(1)
    provider.of('x').answer()
    await call
  })
})

describe('14. a deferred auxiliary', () => {
  it('is a retryable rate limit that is marked, counts no failure, and stays in its queue', async () => {
    const { composition, pass } = await stage({ auxiliaryPendingTimeoutMs: 5_000 })
    composition.scope.beginTurn('t1')
    const one = item('compress')
    const work = composition.work('r1', one)
    await settle()
    await pass(5_000)
    expect(await work).toBeNull()
    expect(composition.queues.get('r1')).toEqual([one])
    expect(composition.poison.get('r1') ?? 0).toBe(0)
    composition.scope.endTurn('t1')
    expect(new Deferred(new LaneRefusal({ _tag: 'Shed', callId: 'c' } as never))).toMatchObject({
      type: 'rate_limit',
      retryable: true,
      providerAdmission: 'deferred',
    })
  })
})

describe('the decorated adapter', () => {
  it('is the adapter in everything else: its name, its capabilities, its private members', async () => {
    const { composition, provider } = await stage()
    const adapter = composition.adapter as ScriptedAdapter
    expect(adapter.name).toBe('anthropic')
    expect(adapter.supportsTools).toBe(true)
    expect(adapter.supportsModel('opus')).toBe(true)
    expect(adapter instanceof ScriptedAdapter).toBe(true)
    expect(adapter.complete).toBe(adapter.complete)
    expect(Object.keys(adapter)).toEqual(Object.keys(provider))
  })

  it('of two scopes: each request goes by its own', async () => {
    const { host, provider } = await stage()
    const scopes = { opus: host.scope('opus', { capacity: 1 }), haiku: host.scope('haiku', { capacity: 1 }) }
    const adapter = lanedAdapter(provider, { scope: ({ model }) => scopes[model as 'opus' | 'haiku'] })
    void caught(adapter.complete({ model: 'opus', prompt: 'a' }))
    void caught(adapter.complete({ model: 'opus', prompt: 'b' }))
    void caught(adapter.complete({ model: 'haiku', prompt: 'c' }))
    await settle()
    expect(provider.log).toEqual(['a', 'c'])
  })
})

it('both residences get their share while one floods, and the decisions say why', async () => {
  const { provider, composition, seen } = await stage({ capacity: 1, quantumTokens: 2 })
  const works = ['a1', 'a2', 'a3', 'a4', 'b1'].map((prompt) =>
    composition.work(prompt.charAt(0), item(prompt)),
  )
  for (let step = 0; step < 5; step += 1) {
    await settle()
    provider.sent.at(-1)?.answer()
  }
  await Promise.all(works)
  expect(provider.log.indexOf('b1')).toBeLessThan(4)
  expect(decisions(seen).filter(({ verdict }) => verdict === 'defer').length).toBe(4)
})
