import Bottleneck from 'bottleneck'
import PQueue from 'p-queue'
import { afterEach, describe, expect, test, vi } from 'vitest'
import { makeProvider, type RuleSpec } from '../../src/emulator/index.ts'
import type { VisibleRefusal } from '../../src/simulation/answers.ts'
import { type Contender, type Ground, priorityRankOf } from '../../src/simulation/arena/ground.ts'
import {
  bottleneckReservoir,
  limitersFor,
  refreshMs,
} from '../../src/simulation/arena/rivals/bottleneck-reservoir.ts'
import { canAdmit, edictReserve } from '../../src/simulation/arena/rivals/edict-gate.ts'
import { bottleneckPriority, pQueuePriority } from '../../src/simulation/arena/rivals/priority-queues.ts'
import { patientRetries, sendRetrying, waitBeforeRetry } from '../../src/simulation/arena/rivals/retrying.ts'
import { settleAndFlush } from '../../src/simulation/arena/rivals/settle-and-flush.ts'
import { rulesOf, runPolicy } from '../../src/simulation/arena/run.ts'
import type { Scenario } from '../../src/simulation/arena/scenario.ts'
import { sequenceOf } from '../../src/simulation/arena/size.ts'
import { startTraffic } from '../../src/simulation/arena/traffic.ts'
import { sdkRetries } from '../../src/simulation/schedulers.ts'
import { Timeline } from '../../src/simulation/timeline.ts'
import { World } from '../../src/simulation/world.ts'
import { callsAt, tinyScenario, workers } from './tiny.ts'

afterEach(() => {
  vi.unstubAllGlobals()
})

class RefusedByProvider extends Error {
  readonly refusal: VisibleRefusal
  constructor(refusal: VisibleRefusal) {
    super('refused')
    this.refusal = refusal
  }
}

const realPQueue: Contender = ({ world, scenario, random }) => {
  const queue = new PQueue({ concurrency: scenario.provider.concurrency! })
  return {
    submit: (call) => {
      void queue.add(
        () =>
          new Promise<void>((resolve) => {
            sendRetrying(world, call, { bounds: sdkRetries, random, jitter: 0.25, over: resolve })
          }),
        { priority: -priorityRankOf(call) },
      )
    },
  }
}

const realBottleneck: Contender = ({ world, scenario, random }) => {
  const limiter = new Bottleneck({ maxConcurrent: scenario.provider.concurrency! })
  limiter.on('failed', (error, { retryCount }) => {
    if (!(error instanceof RefusedByProvider)) throw error
    return waitBeforeRetry(error.refusal, retryCount, { bounds: patientRetries, random, jitter: 0 })
  })
  return {
    submit: (call) => {
      const dispatch = () =>
        new Promise<void>((completed, failed) => {
          const refused = (refusal: VisibleRefusal) => failed(new RefusedByProvider(refusal))
          world.dispatch(call, { accepted: () => {}, completed, refused })
        })
      limiter
        .schedule({ priority: priorityRankOf(call), id: call.id }, dispatch)
        .catch(() => world.end(call.id, true))
    },
  }
}

/** Nested limiters, each with its reservoir and the job's weight, and one that bounds the jobs at once. */
const realReservoir: Contender = ({ world, scenario, random }) => {
  const limiters = limitersFor(scenario).map(({ reservoir, maxConcurrent, weightOf }) => {
    const options =
      reservoir === null
        ? { maxConcurrent }
        : { reservoir, reservoirRefreshAmount: reservoir, reservoirRefreshInterval: refreshMs }
    return { limiter: new Bottleneck(options), weightOf }
  })
  return {
    submit: (call) => {
      const send = () =>
        new Promise<void>((over) => {
          sendRetrying(world, call, { bounds: patientRetries, random, jitter: 0, over })
        })
      const nested = limiters.reduceRight<() => Promise<void>>(
        (inner, { limiter, weightOf }) =>
          () =>
            limiter.schedule({ priority: priorityRankOf(call), weight: weightOf(call), id: call.id }, inner),
        send,
      )
      void nested()
    },
  }
}

/** The outcome of each call. All promise work of a library happens before time goes on. */
const outcomes = async (scenario: Scenario, contender: Contender) => {
  const timeline = new Timeline()
  // The libraries' own timers are on virtual time as well.
  vi.stubGlobal('setTimeout', (fn: () => void, ms = 0) => timeline.after(ms, fn))
  vi.stubGlobal('setInterval', (fn: () => void, ms: number) => {
    const again = (): void => {
      timeline.after(ms, again)
      fn()
    }
    timeline.after(ms, again)
    return { unref: () => {} }
  })
  vi.spyOn(Date, 'now').mockImplementation(() => timeline.now())
  const { latency } = scenario.provider
  const provider = makeProvider({ rules: rulesOf(scenario), latency, seed: scenario.seed })
  const world = new World(timeline, provider)
  const ground: Ground = { world, scenario, random: sequenceOf(scenario.seed, -1) }
  const scheduler = contender(ground)
  startTraffic(scenario, new Map(), timeline, (call, ended) =>
    world.submit(scheduler, call, () => ended(world.records.get(call.id)!.failed)),
  )
  for (let next = timeline.nextAt(); next !== null && next < scenario.durationMs; next = timeline.nextAt()) {
    timeline.step()
    await new Promise((resolve) => setImmediate(resolve))
  }
  vi.unstubAllGlobals()
  vi.restoreAllMocks()
  return [...world.records.values()].map(
    ({ call, submittedAtMs, acceptedAtMs, endedAtMs, refusals, failed }) => ({
      id: call.id,
      submittedAtMs,
      acceptedAtMs,
      endedAtMs,
      refusals,
      failed,
    }),
  )
}

const rules: ReadonlyArray<readonly [string, ReadonlyArray<RuleSpec>]> = [
  [
    'a bucket that states waits',
    [{ rule: 'token-bucket', inputTokensPerMinute: 600, states: 'retry-after' }],
  ],
  ['a silent bucket', [{ rule: 'token-bucket', inputTokensPerMinute: 600, states: 'none' }]],
  ['overloads', [{ rule: 'overload', probability: 0.3 }]],
  ['a hidden bound on calls at once', [{ rule: 'concurrency', maxConcurrent: 2 }]],
]
const mixed = (rule: ReadonlyArray<RuleSpec>, seed: number): Scenario =>
  tinyScenario(
    rule,
    [
      workers('a', 4, { uniform: [20, 90] }, { uniform: [10, 700] }),
      {
        lane: 'primary',
        principal: 'p',
        arrival: { kind: 'poisson', perMinute: 12 },
        inputTokens: { uniform: [20, 200] },
        outputTokens: { uniform: [10, 300] },
      },
      {
        priorityClass: 'orchestration',
        principal: 'q',
        arrival: { kind: 'poisson', perMinute: 6 },
        inputTokens: 40,
        outputTokens: 100,
      },
    ],
    { seed, concurrency: 3, durationMs: 90_000 },
  )

describe('rivals against the libraries that they stand for, on the same virtual time', () => {
  const cases = rules.flatMap(([name, rule]) => [1, 2, 3].map((seed) => [name, seed, rule] as const))

  test.each(cases)('p-queue under %s, seed %i', async (_name, seed, rule) => {
    const scenario = mixed(rule, seed)
    const real = await outcomes(scenario, realPQueue)
    expect(real.length).toBeGreaterThan(20)
    expect(await outcomes(scenario, pQueuePriority)).toEqual(real)
  })

  test.each(cases)('Bottleneck under %s, seed %i', async (_name, seed, rule) => {
    const scenario = mixed(rule, seed)
    const real = await outcomes(scenario, realBottleneck)
    expect(real.length).toBeGreaterThan(20)
    expect(await outcomes(scenario, bottleneckPriority)).toEqual(real)
  })

  const limited: typeof cases = [
    ...cases,
    [
      'requests and output as well',
      4,
      [
        { rule: 'token-bucket', inputTokensPerMinute: 900, states: 'none' },
        { rule: 'requests-per-minute', requestsPerMinute: 30 },
        { rule: 'output-tokens-per-minute', outputTokensPerMinute: 6_000 },
      ],
    ],
  ]
  test.each(limited)("Bottleneck's reservoir under %s, seed %i", async (_name, seed, rule) => {
    const scenario = mixed(rule, seed)
    const real = await outcomes(scenario, realReservoir)
    expect(real.length).toBeGreaterThan(10)
    expect(await outcomes(scenario, bottleneckReservoir)).toEqual(real)
  })
})

describe("the Edict's arithmetic", () => {
  test.each([
    [1, 0],
    [2, 1],
    [4, 1],
    [8, 3],
    [25, 8],
    [32, 11],
    [125, 42],
    [512, 174],
  ])('capacity %i keeps %i', (capacity, reserve) => {
    expect(edictReserve(capacity)).toBe(reserve)
  })

  test.each([
    ['high lands whenever a permit is free', true, 3, 5, true],
    ['nobody goes above capacity', true, 4, 0, false],
    ['background stays below the reserve', false, 3, 0, false],
    ['background fills what is left', false, 2, 0, true],
    ['background yields while a high one waits, even on an empty gate', false, 0, 1, false],
  ])('%s', (_name, isHigh, active, highWaiters, admitted) => {
    expect(canAdmit(isHigh, { active, highWaiters, capacity: 4, reserve: 1 })).toBe(admitted)
  })
})

describe('settle and flush', () => {
  const free: RuleSpec = { rule: 'overload', probability: 0 }
  const acceptances = (scenario: Scenario) =>
    runPolicy(scenario, settleAndFlush).records.map(({ call, acceptedAtMs }) => [
      call.principal,
      acceptedAtMs,
    ])

  test("a primary waits for its own agent's auxiliaries, holds its gate for the whole turn, and flushes all at once", () => {
    const scenario = tinyScenario(
      [free],
      [
        callsAt('auxiliary', 'a', [0, 100, 200, 2_000], 1, 100),
        callsAt('auxiliary', 'b', [150], 1, 100),
        callsAt('primary', 'a', [50], 1, 400),
      ],
    )
    // The auxiliary of 0 ends at 2 s; the primary runs from then to 7 s; three were held meanwhile.
    expect(acceptances(scenario)).toEqual([
      ['a', 0],
      ['a', 2_000],
      ['a', 7_000],
      ['b', 150],
      ['a', 7_000],
      ['a', 7_000],
    ])
  })

  test('a primary cools down for 65 to 70 s after an acceleration limit, the gate still closed', () => {
    const growth: RuleSpec = {
      rule: 'use-growth',
      floorTokensPerMinute: 100,
      growthPerMinute: 1.5,
      tierTokensPerMinute: 400,
    }
    const scenario = tinyScenario(
      [growth],
      [
        callsAt('auxiliary', 'a', [0], 60),
        callsAt('primary', 'a', [10_000], 90),
        callsAt('auxiliary', 'a', [20_000], 10),
      ],
      { durationMs: 180_000 },
    )
    const [first, primary, held] = acceptances(scenario).map(([, atMs]) => atMs as number)
    expect(first).toBe(0)
    expect(primary).toBeGreaterThanOrEqual(75_000)
    expect(primary).toBeLessThanOrEqual(80_000)
    expect(held).toBeGreaterThan(primary!)
  })
})
