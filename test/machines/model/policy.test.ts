/**
 * Every field of a policy refuses values without a meaning. The error names the field, the allowed range and
 * the value.
 */
import { describe, expect, it } from 'vitest'
import {
  adaptivePolicy,
  contractPolicy,
  defaultPolicy,
  InvalidInput,
  type PolicyInput,
  parsePolicy,
  policyDifferences,
  policyPresets,
  poolPolicy,
  reserveOf,
} from '../../../machines/index.ts'
import { restorePolicy } from '../../../machines/model/policy-input.ts'
import { reserveFor } from '../../../machines/model/shares.ts'

const month = 30 * 24 * 60 * 60_000
const duration = `an integer in [0, ${month}]`
const safe = Number.MAX_SAFE_INTEGER

/** Field, a bad value, the allowed values in the message. */
const faults: ReadonlyArray<readonly [string, unknown, string]> = [
  ['preset', 'Adaptive', 'one of contract, adaptive, pool'],
  ['capacity', 0, 'an integer in [1, 65536]'],
  ['capacity', 1.5, 'int'],
  ['capacityFloor', 0, 'an integer in [1, 65536]'],
  ['capacityFloor', 33, 'null or an integer in [1, capacity] = [1, 32]'],
  ['reserve', -1, 'an integer in [0, 65535]'],
  ['reserve', 'much', '"auto"'],
  ['reserveFraction', 1.1, 'a number in [0, 1]'],
  ['reserveFraction', Number.NaN, 'finite'],
  ['squeezeMs', -1, duration],
  ['inFlight', 'kill', '"settle" | "cancel" | "tolerate"'],
  ['tokenReserve', -1, 'an integer in [0, 1000000000]'],
  ['tokenReserve', 'all', '"auto"'],
  ['toleratedInFlight', 65_536, 'an integer in [0, 65535]'],
  ['patienceMs', month + 1, duration],
  ['afterPatience', 'wait', '"proceed" | "cancel"'],
  ['graceMs', -5, duration],
  ['quietWindowMs', -1, duration],
  ['strategy', 'hope', '"quiet" | "holdSteady" | "stepUp" | "backfill" | "adaptive"'],
  ['hold', 'always', '"whileWaiting" | "untilAccepted" | "untilSettled"'],
  ['quantumTokens', 0, `an integer in [1, ${safe}]`],
  ['drainIntervalMs', -1, duration],
  ['maxDeferralMs', 99, `an integer in [100, ${month}]`],
  ['maxRankDeferralMs', 99, `an integer in [100, ${month}]`],
  ['favor', 'mine', '"begunInPrincipal" | "begun" | "arrival"'],
  ['lingerMs', -1, duration],
  ['primaryPendingTimeoutMs', -1, duration],
  ['primaryActiveTimeoutMs', -1, duration],
  ['auxiliaryPendingTimeoutMs', -1, duration],
  ['auxiliaryActiveTimeoutMs', -1, duration],
  ['turnTimeoutMs', -1, duration],
  ['maxAttempts', 0, 'an integer in [1, 1000]'],
  ['pacingBaseMs', -1, duration],
  ['pacingMaxMs', -1, duration],
  ['pacingMaxMs', 249, 'at least pacingBaseMs = 250'],
  ['quotaHoldMs', -1, duration],
  ['unclaimedExpiryMs', -1, duration],
  ['settledRetention', 1_000_001, 'an integer in [0, 1000000]'],
  ['settledRetentionMs', -1, duration],
  ['unknownRetentionMs', -1, duration],
  ['unknownAfterRestart', 'forget', '"report" | "dispatchAgain"'],
  ['limits', 7, 'object'],
  ['limits.requestsPerMinute', 0, `an integer in [1, ${safe}]`],
  ['limits.requestsPerDay', 0, `an integer in [1, ${safe}]`],
  ['limits.inputTokensPerMinute', -4, `an integer in [1, ${safe}]`],
  ['limits.inputTokensPerDay', 0.5, 'int'],
  ['limits.outputTokensPerMinute', '1000', 'number'],
  ['limits.outputTokensPerDay', 0, `an integer in [1, ${safe}]`],
  ['charges', 7, 'object'],
  ['charges.at', 'once', '"admission" | "completion"'],
  ['charges.output', 'max_tokens', '"none" | "estimate" | "maxTokens"'],
  ['charges.defaultMaxOutputTokens', -1, 'an integer in [0, 1000000000]'],
  ['charges.outputWeight', 101, 'a number in [0, 100]'],
  ['charges.combined', true, '"apart" | "sum" | "larger"'],
  ['charges.failures', 'yes', 'boolean'],
  ['charges.cacheReads', 'half', '"asReported" | "free" | "counted"'],
  ['charges.corrected', 1, 'boolean'],
  ['weights', 3, 'object'],
  ['weights.residence-a', 0, 'a number in [0.01, 1000]'],
  ['quotas', 'all', 'object'],
  ['quotas.residence-a', 0, 'an integer in [1, 65536]'],
  ['principalQuota', 0, 'an integer in [1, 65536]'],
  ['qos', 3, 'object'],
  ['qos.bandPlaces', -1, 'an integer in [0, 65536]'],
  ['qos.bandPlaces', 'few', '"auto"'],
  ['qos.principalCalls', 0, 'an integer in [1, 65536]'],
  ['qos.burstCalls', 0, 'an integer in [1, 65536]'],
  ['qos.callsPerSecond', 0, 'a number in [0.001, 65536]'],
]

/** `{ limits: { requestsPerDay: 0 } }` for `limits.requestsPerDay`. */
const inputOf = (field: string, value: unknown): PolicyInput => {
  const [outer, inner] = field.split('.') as [string, string | undefined]
  return { [outer]: inner === undefined ? value : { [inner]: value } } as PolicyInput
}

const problemsOf = (input: unknown): ReadonlyArray<string> => {
  try {
    parsePolicy(input as PolicyInput)
    return []
  } catch (error) {
    if (!(error instanceof InvalidInput)) throw error
    return error.problems.map(({ field, expected, got }) => `${field}: ${expected}, got ${got}`)
  }
}

describe('a policy', () => {
  it.each(faults)(
    'that says %s: %j is refused with the field, the range and the value',
    (field, value, allowed) => {
      const problems = problemsOf(inputOf(field, value))
      const got = typeof value === 'number' ? String(value) : JSON.stringify(value)
      for (const problem of problems) expect(problem).toMatch(`policy.${field}: `)
      expect(problems.join('; ').toLowerCase()).toContain(allowed.toLowerCase())
      for (const problem of problems) expect(problem.endsWith(`, got ${got}`)).toBe(true)
    },
  )

  it('has a fault in this table for every one of its fields', () => {
    const fields = Object.keys(contractPolicy).filter((field) => field !== 'limits')
    const limits = Object.keys(contractPolicy.limits).map((field) => `limits.${field}`)
    const tested = new Set(faults.map(([field]) => field))
    const charges = Object.keys(contractPolicy.charges).map((field) => `charges.${field}`)
    const missing = [...fields, ...limits, ...charges].filter((field) => !tested.has(field))
    expect(missing).toEqual([])
  })

  it.each([
    ['a field that nobody knows', { capacty: 3 }, 'policy.capacty: only known fields, got 3'],
    [
      'a limit that nobody knows',
      { limits: { tokens: 3 } },
      'policy.limits.tokens: only known fields, got 3',
    ],
    [
      'a reserve above capacity - 1',
      { capacity: 8, reserve: 9 },
      'policy.reserve: an integer in [0, capacity-1] = [0, 7], got 9',
    ],
    [
      'a limit of a server that nobody knows',
      { qos: { speed: 3 } },
      'policy.qos.speed: only known fields, got 3',
    ],
    ['limits that are null', { limits: null }, 'policy.limits: object, got null'],
    ['no object', 5, 'policy: object, got 5'],
    ['null', null, 'policy: object, got null'],
  ])('that is or has %s is refused', (_, input, problem) => {
    expect(problemsOf(input)).toEqual([problem])
  })

  it('that has several faults is refused with all of them', () => {
    expect(problemsOf({ capacity: 0, maxAttempts: 0, hold: 'x' })).toHaveLength(3)
  })

  it('fills in what is left out, field by field, also inside its limits', () => {
    const policy = parsePolicy({ capacity: 4, limits: { requestsPerDay: 9 } }, contractPolicy)
    expect(policy).toEqual({
      ...contractPolicy,
      capacity: 4,
      limits: { ...contractPolicy.limits, requestsPerDay: 9 },
    })
  })

  it('sizes what a server sheds by its capacity, where nothing else is said', () => {
    const auto = { bandPlaces: 'auto', principalCalls: 'auto', burstCalls: 'auto', callsPerSecond: 'auto' }
    expect(parsePolicy({ qos: {} }).qos).toEqual(auto)
    const once = parsePolicy({ qos: { burstCalls: 9 } })
    expect(once.qos).toEqual({ ...auto, burstCalls: 9 })
    expect(parsePolicy({ qos: { bandPlaces: 0 } }, once).qos).toEqual({
      ...auto,
      burstCalls: 9,
      bandPlaces: 0,
    })
    expect(parsePolicy({}, once).qos).toEqual(once.qos)
    expect(parsePolicy({ qos: null }, once).qos).toBeNull()
  })

  it.each([
    ['contract', contractPolicy],
    ['adaptive', adaptivePolicy],
    ['pool', poolPolicy],
  ])('of ours (%s) passes its own check', (_, policy) => {
    expect(parsePolicy(policy)).toEqual(policy)
  })

  it.each(Object.values(policyPresets))('is its differences from its preset again ($preset)', (preset) => {
    const policy = parsePolicy({ maxAttempts: 3, limits: { requestsPerMinute: 5 } }, preset)
    expect(parsePolicy(policyDifferences(policy))).toEqual(policy)
    expect(parsePolicy(policyDifferences(policy, poolPolicy), poolPolicy)).toEqual(policy)
    expect(policyDifferences(preset)).toEqual(preset === defaultPolicy ? {} : { preset: preset.preset })
  })

  it.each([1, 3])('of capacity %i lowers the floor that its preset gives', (capacity) => {
    expect(parsePolicy({ capacity })).toEqual({ ...defaultPolicy, capacity, capacityFloor: capacity })
  })

  it('is a plain value: parsed twice, it is the same', () => {
    const once = parsePolicy({ weights: { a: 2 }, limits: { requestsPerMinute: 5 } })
    expect(parsePolicy(JSON.parse(JSON.stringify(once)) as PolicyInput)).toEqual(once)
  })
})

describe('a policy out of a journal', () => {
  const { quotas: _, ...older } = parsePolicy({ capacity: 4, weights: { a: 2 } }, contractPolicy)

  it('that was written before lower ranks aged goes on without', () => {
    const { maxRankDeferralMs: __, ...before } = contractPolicy
    expect(restorePolicy(before, 'policy')).toEqual({ ...contractPolicy, maxRankDeferralMs: null })
  })

  it('that was written before turns were favored goes on by arrival', () => {
    const { favor: __, ...before } = contractPolicy
    expect(restorePolicy(before, 'policy')).toEqual({ ...contractPolicy, favor: 'arrival' })
  })

  it.each(Object.keys(contractPolicy).filter((field) => !['maxRankDeferralMs', 'favor'].includes(field)))(
    'that was written without %s is completed by what is default',
    (field) => {
      const { [field as keyof typeof contractPolicy]: __, ...lacking } = contractPolicy
      expect(restorePolicy(lacking, 'policy')).toEqual(contractPolicy)
    },
  )

  it('keeps what it says, in an order of fields that is always the same', () => {
    const restored = restorePolicy(older, 'policy')
    expect(JSON.stringify(restored)).toBe(
      JSON.stringify(parsePolicy({ capacity: 4, weights: { a: 2 } }, contractPolicy)),
    )
  })

  it.each([
    [
      'a value out of range',
      { ...older, capacity: 0 },
      'row.capacity: expected an integer in [1, 65536], got 0',
    ],
    ['a field that nobody knows', { ...older, speed: 1 }, 'row.speed: expected only known fields, got 1'],
    [
      'values that cannot be together',
      { ...older, reserve: 9 },
      'row.reserve: expected an integer in [0, capacity-1] = [0, 3], got 9',
    ],
    ['no policy', null, 'row: expected object, got null'],
  ])('with %s is refused by the name of its field', (_case, stored, message) => {
    expect(() => restorePolicy(stored, 'row')).toThrow(InvalidInput)
    expect(() => restorePolicy(stored, 'row')).toThrow(message)
  })
})

describe('a floor under a learned capacity', () => {
  it('may be the capacity itself', () => {
    expect(parsePolicy({ capacity: 8, capacityFloor: 8 }).capacityFloor).toBe(8)
  })
})

describe('the reserve', () => {
  it('that is chosen leaves a place where fewer were learned', () => {
    expect(reserveFor(parsePolicy({ capacity: 16, reserve: 9 }, contractPolicy), 4)).toBe(3)
  })

  it.each([
    [1, 0],
    [2, 1],
    [4, 1],
    [5, 2],
    [7, 2],
    [8, 3],
    [10, 3],
    [16, 5],
    [25, 8],
    [32, 11],
    [64, 22],
    [100, 34],
    [125, 42],
    [225, 76],
    [425, 144],
    [512, 174],
  ])('of capacity %i sizes itself to %i: round half to even', (capacity, reserve) => {
    expect(reserveOf(parsePolicy({ capacity }, contractPolicy))).toBe(reserve)
  })

  it.each([
    ['what is chosen', { capacity: 8, reserve: 0 }, 0],
    ['all but one place at most', { capacity: 3, reserveFraction: 1 }, 2],
    ['one place at least in a real pool', { capacity: 2, reserveFraction: 0 }, 1],
    ['nothing in a pool of one', { capacity: 1, reserveFraction: 1 }, 0],
    ['rounded up from half to an even number', { capacity: 3, reserveFraction: 0.5 }, 2],
    ['rounded down from half to an even number', { capacity: 5, reserveFraction: 0.5 }, 2],
  ])('is %s', (_, input, reserve) => {
    expect(reserveOf(parsePolicy(input, contractPolicy))).toBe(reserve)
  })
})
