/** The acceptance cases of the incident that this project exists for, in their order. */
import { describe, expect, it } from 'vitest'
import { makeProvider } from '../../src/emulator/index.ts'
import {
  OutcomeUnknown,
  PendingTimeout,
  type PolicyInput,
  Preempted,
  policyPresets,
} from '../../src/index.ts'
import type { Journal } from '../../src/journal/journal.ts'
import { openMemoryJournal } from '../../src/journal/memory.ts'
import { seededRandom } from '../../src/simulation/random.ts'
import { laneScheduler, retryingClients, sdkRetries } from '../../src/simulation/schedulers.ts'
import { Timeline } from '../../src/simulation/timeline.ts'
import { Witness } from '../../src/simulation/witness.ts'
import { type Scheduler, World } from '../../src/simulation/world.ts'
import { accelerationError, Bench, settle } from '../host/bench.ts'

const minuteMs = 60_000

/** Nine workers that never stop sending 50-70k calls, and a primary of 180k that comes in the tenth minute. */
const incident = (scheduler: (world: World) => Scheduler) => {
  const timeline = new Timeline(1_700_000_000_000)
  const rules = [{ rule: 'token-bucket' as const, inputTokensPerMinute: 210_000, states: 'none' as const }]
  const provider = makeProvider({ rules, latency: { firstTokenMs: 1_500, perOutputTokenMs: 20 }, seed: 1 })
  const world = new World(timeline, provider)
  const random = seededRandom(11)
  const lanes = scheduler(world)
  let calls = 0
  const work = (worker: number): void => {
    const inputTokens = 50_000 + Math.floor(random() * 20_000)
    const call = {
      id: `aux-${calls++}`,
      lane: 'auxiliary' as const,
      priorityClass: 'background_ingestion' as const,
      principal: `residence-${worker % 3}`,
      inputTokens,
      outputTokens: 200,
    }
    world.submit(lanes, call, () => timeline.after(100, () => work(worker)))
  }
  for (let worker = 0; worker < 9; worker += 1) work(worker)
  timeline.after(10 * minuteMs, () =>
    world.submit(lanes, {
      id: 'primary',
      lane: 'primary',
      priorityClass: 'interactive',
      principal: 'residence-0',
      inputTokens: 180_000,
      outputTokens: 400,
    }),
  )
  timeline.runUntil(timeline.now() + 40 * minuteMs)
  const primary = world.records.get('primary')!
  const auxiliaries = [...world.records.values()].filter(({ call }) => call.lane === 'auxiliary')
  return { primary, auxiliaries, world }
}

describe.each(['contract', 'adaptive'] as const)('under the preset %s', (preset) => {
  const policy = policyPresets[preset]
  const open = (
    stated: PolicyInput = {},
    ...rest: readonly [journal?: Journal, at?: number]
  ): Promise<Bench> => Bench.open({ preset, ...stated }, ...rest)

  describe('1. a fake provider with a token-per-minute rule and continuous 50-70k auxiliaries', () => {
    it('never indefinitely blocks a pending 180k primary: its wait is bounded by a number from the policy', () => {
      const { primary, auxiliaries } = incident((world) => {
        const witness = new Witness(policy)
        return laneScheduler(world, policy, (event, decisions, after) =>
          witness.observe(event, decisions, after),
        )
      })
      // The bucket itself needs this long to hold the call, however still everybody else is.
      const providerMs = (180_000 / 210_000) * minuteMs
      const boundMs = policy.patienceMs + policy.quietWindowMs + providerMs
      expect(primary.acceptedAtMs).not.toBeNull()
      expect(primary.acceptedAtMs! - primary.submittedAtMs).toBeLessThanOrEqual(boundMs)
      const served = auxiliaries.filter(
        ({ acceptedAtMs }) => acceptedAtMs !== null && acceptedAtMs > primary.endedAtMs!,
      )
      expect(served.length).toBeGreaterThan(50)
    })

    it('starves it without lanes: the same traffic, the same provider, the clients of the SDKs', () => {
      const patient = incident((world) =>
        retryingClients(world, { ...sdkRetries, retries: Number.POSITIVE_INFINITY }, seededRandom(3)),
      )
      expect(patient.primary.acceptedAtMs).toBeNull()
      expect(patient.primary.refusals).toBeGreaterThan(100)
      const sdk = incident((world) => retryingClients(world, sdkRetries, seededRandom(3)))
      expect(sdk.primary.failed).toBe(true)
    })
  })

  describe('2. a pending primary', () => {
    it('causes later auxiliaries to defer before they are dispatched', async () => {
      const bench = await open()
      await bench.auxiliary('before')
      await bench.primary('primary')
      await bench.auxiliary('after')
      const settles = policy.inFlight === 'settle'
      expect(bench.log).toEqual(settles ? ['before'] : ['before', 'primary'])
      const state = settles ? 'primaryPending' : 'quietRamp.admitting'
      expect(bench.scope.status).toMatchObject({ state, auxiliaryGate: 'closed' })
      await bench.finish('before')
      await bench.auxiliary('later still')
      expect(bench.log).toEqual(['before', 'primary'])
      await bench.host.close()
    })
  })

  describe('3. settlement of auxiliaries in flight is explicit and observed', () => {
    it('settle: the primary waits for them, at most patienceMs', async () => {
      const bench = await open({ inFlight: 'settle', patienceMs: 10_000 })
      await bench.auxiliary('a')
      await bench.primary('p')
      await bench.pass(9_999)
      expect(bench.log).toEqual(['a'])
      await bench.pass(1)
      expect(bench.log).toEqual(['a', 'p'])
      expect(bench.dispatch('a').permit.signal.aborted).toBe(false)
      await bench.host.close()
    })

    it('cancel: they are aborted with Preempted, keep their place, and are run again', async () => {
      const bench = await open({ inFlight: 'cancel' })
      await bench.auxiliary('a')
      const first = bench.dispatch('a').permit
      await bench.primary('p')
      expect(first.signal.reason).toBeInstanceOf(Preempted)
      expect(bench.log).toEqual(['a', 'p'])
      await bench.finish('p')
      expect(bench.log).toEqual(['a', 'p', 'a'])
      await bench.finish('a', 'done')
      expect(bench.outcomes.get('a')).toBe('done')
      expect(bench.scope.status.counters).toMatchObject({ preemptions: 1, completed: 2 })
      await bench.host.close()
    })

    it('tolerate: the primary goes at once and they go on', async () => {
      const bench = await open({ inFlight: 'tolerate' })
      await bench.auxiliary('a')
      await bench.primary('p')
      expect(bench.log).toEqual(['a', 'p'])
      expect(bench.running).toEqual(['a', 'p'])
      await bench.host.close()
    })

    it('an auxiliary that ignores its abort counts as abandoned after graceMs', async () => {
      const bench = await open({ inFlight: 'cancel', graceMs: 2_000 })
      void bench.scope
        .run({ id: 'deaf', lane: 'auxiliary' }, () => new Promise(() => {}))
        .catch((error) => bench.outcomes.set('deaf', error))
      await settle()
      await bench.primary('p')
      expect(bench.log).toEqual([])
      await bench.pass(2_000)
      expect(bench.log).toEqual(['p'])
      expect(bench.outcomes.get('deaf')).toMatchObject({ _tag: 'Abandoned' })
      await bench.host.close()
    })
  })

  describe('4. primary success', () => {
    it('releases queued auxiliaries exactly once, each', async () => {
      const bench = await open({ drainIntervalMs: 0 })
      await bench.primary('p')
      const ids = Array.from({ length: 12 }, (_, index) => `a${index}`)
      for (const id of ids) await bench.auxiliary(id, { principal: `r${id.length}` })
      expect(bench.log).toEqual(['p'])
      await bench.finish('p')
      while (bench.running.length > 0) await bench.finish(bench.running[0]!)
      expect([...bench.log].sort()).toEqual(['p', ...ids].sort())
      // A settled call that went back into its queue would be released again by now.
      await bench.pass(60_000)
      expect(bench.log).toHaveLength(13)
      expect(bench.host.status()[0]).toMatchObject({
        primary: { waiting: 0 },
        auxiliary: { waiting: 0, inFlight: 0 },
      })
      await bench.host.close()
    })

    it('releases them metered: one quantum in each interval, never the whole backlog at once', async () => {
      const bench = await open({ drainIntervalMs: 1_000, quantumTokens: 100 })
      await bench.primary('p')
      const ids = Array.from({ length: 6 }, (_, index) => `a${index}`)
      for (const id of ids) await bench.auxiliary(id, { principal: id, inputTokens: 50 })
      await bench.finish('p')
      expect(bench.log.length - 1).toBe(2)
      await bench.pass(999)
      expect(bench.log.length - 1).toBe(2)
      await bench.pass(1)
      expect(bench.log.length - 1).toBe(4)
      await bench.pass(1_000)
      expect(bench.log.length - 1).toBe(6)
      await bench.host.close()
    })
  })

  describe('5. a primary that does not succeed never parks auxiliaries for ever', () => {
    const cases: ReadonlyArray<readonly [string, (bench: Bench, abort: AbortController) => Promise<void>]> = [
      ['fails', (bench) => bench.fail('p', new Error('socket hang up'))],
      [
        'is aborted by its caller while it runs',
        async (_, abort) => {
          abort.abort(new Error('user left'))
          await settle()
        },
      ],
      ['runs into its active timeout', (bench) => bench.pass(policy.primaryActiveTimeoutMs)],
      [
        'is refused for good',
        (bench) =>
          bench.fail(
            'p',
            Object.assign(new Error('429'), {
              status: 429,
              headers: {},
              error: {
                error: {
                  type: 'rate_limit_error',
                  message: 'Extra usage is required for long context requests.',
                },
              },
            }),
          ),
      ],
      [
        'meets a spend cap, which holds the scope for a bounded time',
        async (bench) => {
          const error = {
            error: {
              type: 'insufficient_quota',
              code: 'insufficient_quota',
              message: 'You exceeded your current quota.',
            },
          }
          await bench.fail('p', Object.assign(new Error('429'), { status: 429, headers: {}, error }))
          expect(bench.scope.status.wait).toMatchObject({ kind: 'quota-exhausted' })
          expect(bench.log).toEqual(['p'])
          await bench.pass(policy.quotaHoldMs)
        },
      ],
    ]
    it.each(cases)('when it %s', async (_, end) => {
      const abort = new AbortController()
      const bench = await open()
      await bench.primary('p', { signal: abort.signal })
      await bench.auxiliary('a')
      expect(bench.log).toEqual(['p'])
      await end(bench, abort)
      expect(bench.log).toEqual(['p', 'a'])
      expect(bench.outcomes.get('p')).toBeInstanceOf(Error)
      await bench.host.close()
    })

    it('when it waits longer than primaryPendingTimeoutMs behind a call that nobody answers', async () => {
      const bench = await open({ capacity: 1, primaryPendingTimeoutMs: 60_000 })
      await bench.primary('first')
      await bench.primary('second')
      await bench.auxiliary('a')
      await bench.pass(60_000)
      expect(bench.outcomes.get('second')).toBeInstanceOf(PendingTimeout)
      await bench.finish('first')
      expect(bench.log).toEqual(['first', 'a'])
      await bench.host.close()
    })

    it('when it is withdrawn while it waits', async () => {
      const abort = new AbortController()
      const bench = await open({ inFlight: 'settle' })
      await bench.auxiliary('running')
      await bench.primary('p', { signal: abort.signal })
      await bench.auxiliary('held')
      abort.abort(new Error('user left'))
      await settle()
      expect(bench.log).toEqual(['running', 'held'])
      expect(bench.outcomes.get('p')).toMatchObject({ message: 'user left' })
      await bench.host.close()
    })
  })

  describe('6. scopes', () => {
    it('do not cross-block: other key, other model, other residence with its own key', async () => {
      const bench = await open()
      await bench.primary('p')
      await bench.auxiliary('held')
      const otherKey = bench.host.scope({ provider: 'anthropic', credential: 'k2', model: 'm' })
      const otherModel = bench.host.scope({ provider: 'anthropic', credential: 'k1', model: 'small' })
      await bench.start('free 1', { lane: 'auxiliary' }, otherKey)
      await bench.start('free 2', { lane: 'auxiliary' }, otherModel)
      expect(bench.log).toEqual(['p', 'free 1', 'free 2'])
      await bench.host.close()
    })

    it('share when they are configured to: one name for two models', async () => {
      const bench = await open()
      const large = bench.host.scope({ provider: 'anthropic', credential: 'k1' })
      const small = bench.host.scope({ provider: 'anthropic', credential: 'k1' })
      await bench.start('p', { lane: 'primary' }, large)
      await bench.start('held', { lane: 'auxiliary' }, small)
      expect(bench.log).toEqual(['p'])
      await bench.host.close()
    })
  })

  describe('7. a restart', () => {
    it('keeps a pending primary and a held auxiliary, and repeats nothing that was sent', async () => {
      const journal = openMemoryJournal()
      const bench = await open({ capacity: 2, inFlight: 'settle' }, journal)
      await bench.auxiliary('sent')
      await bench.primary('pending')
      await bench.auxiliary('held')
      expect(bench.log).toEqual(['sent'])

      const next = await open(
        { capacity: 2, inFlight: 'settle' },
        openMemoryJournal({ history: journal.survivors() }),
        1_000_500,
      )
      expect(next.scope.status).toMatchObject({
        auxiliaryGate: 'closed',
        primary: { waiting: 1 },
        auxiliary: { waiting: 1 },
      })
      await next.auxiliary('sent')
      expect(next.outcomes.get('sent')).toBeInstanceOf(OutcomeUnknown)
      await next.auxiliary('held')
      expect(next.log).toEqual([])
      await next.primary('pending')
      expect(next.log).toEqual(['pending'])
      await next.finish('pending')
      expect(next.log).toEqual(['pending', 'held'])
      await next.host.close()
    })
  })

  describe('8. provider-cap and poison protections', () => {
    it('a 429 never becomes a result: it is evidence, and the call keeps its place', async () => {
      const bench = await open()
      await bench.primary('p')
      await bench.fail('p', accelerationError())
      expect(bench.outcomes.has('p')).toBe(false)
      expect(bench.scope.status).toMatchObject({ state: 'quietRamp.quiet', primary: { waiting: 1 } })
      await bench.pass(policy.quietWindowMs)
      expect(bench.log).toEqual(['p', 'p'])
      await bench.finish('p', 'an answer')
      expect(bench.outcomes.get('p')).toBe('an answer')
      await bench.host.close()
    })

    it.each([
      [
        'a spend cap',
        429,
        {
          type: 'error',
          error: {
            type: 'rate_limit_error',
            message: 'Spend limit reached.',
            details: { error_code: 'enforced_spend_limit_reached' },
          },
        },
      ],
      [
        'a low credit balance',
        400,
        {
          type: 'error',
          error: {
            type: 'invalid_request_error',
            message: 'Your credit balance is too low to access the Anthropic API.',
          },
        },
      ],
      [
        'long-context entitlement',
        429,
        {
          type: 'error',
          error: { type: 'rate_limit_error', message: 'Extra usage is required for long context requests.' },
        },
      ],
    ])('%s goes to the caller at once, as the provider said it', async (_, status, error) => {
      const bench = await open()
      await bench.primary('p')
      const refusal = Object.assign(new Error('refused'), { status, headers: {}, error })
      await bench.fail('p', refusal)
      expect(bench.outcomes.get('p')).toBe(refusal)
      expect(bench.log).toEqual(['p'])
      await bench.host.close()
    })

    it('its attempts end in a named error that carries the last refusal', async () => {
      const bench = await open({ maxAttempts: 2, quietWindowMs: 1_000 })
      await bench.primary('p')
      await bench.fail('p', accelerationError())
      await bench.pass(1_000)
      await bench.fail('p', accelerationError())
      expect(bench.outcomes.get('p')).toMatchObject({ _tag: 'AttemptsExhausted', cause: { status: 429 } })
      await bench.host.close()
    })
  })
})
