/**
 * A law: for all actions of owners, providers and policies, in any order, no permit is ever without a holder,
 * and every call ends.
 */
import { Effect, Exit, HashMap } from 'effect'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { noAmbient } from '../../src/carrier/ambient.ts'
import { Place, type PlaceHolder } from '../../src/gateway/calls/place.ts'
import { runnerOf } from '../../src/host/internal.ts'
import { callOf } from '../../src/host/request.ts'
import { effectScope } from '../../src/host/service.ts'
import { lanedFetch, ManualClock, openHost, type Permit, type Settlement } from '../../src/index.ts'
import { runs } from '../properties/runs.ts'
import { accelerationError, settle } from './bench.ts'

/** Counts the holders that keep the process alive. */
class HeldClock extends ManualClock {
  holders = 0
  hold(): () => void {
    this.holders += 1
    return () => {
      this.holders -= 1
    }
  }
}

type Face = 'promise' | 'effect' | 'fetch' | 'permit' | 'gateway'

type Step =
  | {
      readonly do: 'ask'
      readonly face: Face
      readonly id: number
      readonly lane: 'primary' | 'auxiliary'
      /** Whether its attempts end as soon as they are asked to. */
      readonly obeys: boolean
      /** Whether the holder of a bare permit asks again for a call that went back to its place. */
      readonly returns: boolean
      readonly leftBefore: boolean
    }
  | {
      readonly do: 'answer' | 'refuse' | 'fail' | 'accept' | 'settle by itself' | 'settle twice'
      readonly at: number
    }
  | { readonly do: 'leave' | 'withdraw'; readonly at: number }
  | { readonly do: 'pass'; readonly ms: number }

const at = fc.nat({ max: 3 })

const steps: fc.Arbitrary<ReadonlyArray<Step>> = fc.array(
  fc.oneof(
    {
      weight: 4,
      arbitrary: fc.record({
        do: fc.constant('ask' as const),
        face: fc.constantFrom<Face>('promise', 'effect', 'fetch', 'permit', 'gateway'),
        id: fc.nat({ max: 4 }),
        lane: fc.constantFrom('primary' as const, 'auxiliary' as const),
        obeys: fc.boolean(),
        returns: fc.boolean(),
        leftBefore: fc.integer({ min: 0, max: 9 }).map((draw) => draw === 0),
      }),
    },
    {
      weight: 4,
      arbitrary: fc.record({
        do: fc.constantFrom('answer', 'refuse', 'fail', 'accept', 'settle by itself', 'settle twice'),
        at,
      }),
    },
    { weight: 3, arbitrary: fc.record({ do: fc.constantFrom('leave', 'withdraw'), at }) },
    {
      weight: 2,
      arbitrary: fc.record({ do: fc.constant('pass' as const), ms: fc.constantFrom(1, 600, 5_000) }),
    },
  ) as fc.Arbitrary<Step>,
  { minLength: 4, maxLength: 30 },
)

interface Running {
  readonly id: string
  readonly permit: Permit | null
  readonly answer: () => void
  readonly refuse: () => void
  readonly fail: () => void
}

interface Asked {
  readonly id: string
  readonly controller: AbortController
  ended: boolean
}

const refusal = {
  kind: 'overloaded',
  scope: 'model',
  retryAfterMs: null,
  retryable: true,
  facts: {},
} as const

class World {
  readonly clock: HeldClock
  readonly host
  readonly scope
  readonly running = new Set<Running>()
  readonly asked: Asked[] = []
  readonly past: Permit[] = []

  private constructor(clock: HeldClock, host: Awaited<ReturnType<typeof openHost>>) {
    this.clock = clock
    this.host = host
    this.scope = host.scope('anthropic/k/m', {
      capacity: 2,
      reserve: 1,
      inFlight: 'cancel',
      graceMs: 2_000,
      maxAttempts: 3,
      settledRetention: 64,
      auxiliaryPendingTimeoutMs: 60_000,
      primaryPendingTimeoutMs: 60_000,
      unclaimedExpiryMs: 30_000,
    })
  }

  static async open(): Promise<World> {
    const clock = new HeldClock(1_000_000)
    return new World(clock, await openHost({ clock }))
  }

  get context() {
    return runnerOf(this.scope).context
  }

  async take(step: Step): Promise<void> {
    if (step.do === 'ask') this.#ask(step)
    else if (step.do === 'pass') await this.pass(step.ms)
    else if (step.do === 'leave') this.asked[step.at]?.controller.abort(new Error('left'))
    else if (step.do === 'withdraw') this.scope.withdraw(`c${step.at}`)
    else if (step.do === 'settle twice') this.past[step.at]?.settle({ outcome: 'failed' })
    else {
      const one = [...this.running][step.at]
      if (one !== undefined) this.#act(one, step.do)
    }
    await settle(3)
  }

  #act(one: Running, act: 'answer' | 'refuse' | 'fail' | 'accept' | 'settle by itself'): void {
    if (act === 'accept') one.permit?.accepted()
    else if (act === 'settle by itself') one.permit?.settle({ outcome: 'throttled', evidence: refusal })
    else one[act]()
  }

  async pass(ms: number): Promise<void> {
    const endMs = this.clock.now() + ms
    for (let next = this.clock.nextAt(); next !== null && next <= endMs; next = this.clock.nextAt()) {
      this.clock.step()
      await settle(2)
    }
    this.clock.advance(endMs - this.clock.now())
  }

  #ask(step: Extract<Step, { do: 'ask' }>): void {
    const asked: Asked = { id: `c${step.id}`, controller: new AbortController(), ended: false }
    if (step.leftBefore) asked.controller.abort(new Error('left before'))
    this.asked.push(asked)
    const over = () => {
      asked.ended = true
    }
    this.#calls[step.face](asked, step).then(over, over)
  }

  /** One attempt, which the steps end. */
  #attempt(id: string, permit: Permit | null, signal: AbortSignal, obeys: boolean): Promise<string> {
    return new Promise((resolve, reject) => {
      const end = (tell: () => void) => () => {
        this.running.delete(running)
        tell()
      }
      const running: Running = {
        id,
        permit,
        answer: end(() => resolve('answer')),
        refuse: end(() => reject(accelerationError())),
        fail: end(() => reject(new Error('of its own'))),
      }
      if (permit !== null) this.past.push(permit)
      this.running.add(running)
      signal.addEventListener('abort', () => obeys && end(() => reject(signal.reason))())
    })
  }

  readonly #calls: Readonly<
    Record<Face, (asked: Asked, step: Extract<Step, { do: 'ask' }>) => Promise<unknown>>
  > = {
    promise: ({ id, controller: { signal } }, { lane, obeys }) =>
      this.scope.run({ id, lane, signal }, (permit) => this.#attempt(id, permit, permit.signal, obeys)),
    effect: ({ id, controller: { signal } }, { lane, obeys }) =>
      Effect.runPromiseExit(
        effectScope(runnerOf(this.scope)).run({ id, lane }, (permit) =>
          Effect.tryPromise({
            try: (interrupted) => this.#attempt(id, permit, interrupted, true),
            catch: (error) => error,
          }),
        ),
        obeys ? { signal } : {},
      ).then((exit) => Exit.isSuccess(exit)),
    fetch: ({ id, controller: { signal } }, { lane, obeys }) => {
      const laned = lanedFetch(this.scope, {
        call: () => ({ id, lane, signal }),
        fetch: async (_, init) => {
          try {
            await this.#attempt(id, null, init?.signal as AbortSignal, obeys)
            return new Response('{}', { headers: { 'content-type': 'application/json' } })
          } catch (error) {
            if ((error as { status?: number }).status !== 429) throw error
            return new Response(JSON.stringify((error as { error?: unknown }).error), { status: 429 })
          }
        },
      })
      return laned('http://provider/v1/messages', { method: 'POST', body: '{"model":"m"}' }).then(
        (response) => response.text(),
      )
    },
    // Like a call of the gateway: when it is taken back, it stops its upstream and settles at once.
    gateway: ({ id, controller: { signal } }, { lane }) =>
      new Promise<void>((over) => {
        let isOver = false
        let attempt = 0
        const end = () => {
          isOver = true
          over()
        }
        const holder: PlaceHolder = {
          isPresent: true,
          refused: end,
          missed: end,
          granted: (permit) => {
            attempt += 1
            const current = attempt
            const ended = (settlement: Settlement) => {
              if (isOver || current !== attempt || !place.holds(permit)) return
              if (place.settle(settlement) === 'ended') end()
            }
            permit.signal.addEventListener('abort', () => ended({ outcome: 'cancelled' }))
            this.#attempt(id, permit, permit.signal, true).then(
              () => ended({ outcome: 'completed' }),
              (error: { status?: number }) =>
                ended(
                  error.status === 429 ? { outcome: 'throttled', evidence: refusal } : { outcome: 'failed' },
                ),
            )
          },
        }
        const call = callOf({ id, lane }, this.scope.name, noAmbient)
        const place = new Place(runnerOf(this.scope), call, this.clock, holder)
        const leave = () => {
          if (isOver) return
          if (place.isAwaited) place.withdraw('the client left')
          else place.end({ outcome: 'cancelled' })
          end()
        }
        if (signal.aborted) return end()
        signal.addEventListener('abort', leave)
        place.ask()
      }),
    permit: async ({ id, controller: { signal } }, { lane, obeys, returns }) => {
      for (;;) {
        const permit = await this.scope.admit({ id, lane, signal })
        await permit.dispatched()
        const settled = await this.#attempt(id, permit, permit.signal, obeys).then(
          () => permit.settle({ outcome: 'completed' }),
          (error: { status?: number }) =>
            permit.settle(
              error.status === 429 && !permit.signal.aborted
                ? { outcome: 'throttled', evidence: refusal }
                : { outcome: 'cancelled' },
            ),
        )
        if (settled === 'ended' || !returns) return
      }
    },
  }

  /**
   * Every running call has an owner that uses it, and every call that may be granted has an owner that waits
   * for it.
   */
  owned(): void {
    const used = new Set([...this.running].map(({ id }) => id))
    for (const id of HashMap.keys(this.context.inFlight)) expect(used, `${id} is in flight`).toContain(id)
    const pending = new Set(this.asked.filter(({ ended }) => !ended).map(({ id }) => id))
    for (const [id, { unclaimedUntilMs }] of HashMap.entries(this.context.waiting)) {
      if (unclaimedUntilMs === null) expect(pending, `${id} waits`).toContain(id)
    }
  }

  async end(): Promise<void> {
    for (let round = 0; round < 60; round += 1) {
      for (const one of [...this.running]) one.answer()
      await settle(2)
      await this.pass(2_000)
      this.owned()
    }
    expect(this.asked.filter(({ ended }) => !ended).map(({ id }) => id)).toEqual([])
    const { counts } = this.context
    expect(counts).toMatchObject({
      primaryWaiting: 0,
      auxiliaryWaiting: 0,
      primaryInFlight: 0,
      auxiliaryInFlight: 0,
    })
    expect(runnerOf(this.scope).openPermits).toBe(0)
    expect(this.clock.holders).toBe(0)
    await this.host.close()
  }
}

describe('in any history of asking, granting, preempting, refusing, leaving and settling', () => {
  it('no permit is held by nobody, nothing is in flight at the end, and nobody waits for ever', async () => {
    await fc.assert(
      fc.asyncProperty(steps, async (history) => {
        const world = await World.open()
        for (const step of history) {
          await world.take(step)
          world.owned()
        }
        await world.end()
      }),
      { numRuns: runs(200), endOnFailure: true },
    )
  }, 120_000)
})
