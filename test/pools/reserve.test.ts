import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { InvalidInput, parsePolicy, poolPolicy, reserveOf } from '../../machines/index.ts'
import { policyFromEnvironment } from '../../src/config/environment.ts'
import { modelGatePolicy } from '../../src/config/pools.ts'

const reserveFor = (env: NodeJS.ProcessEnv, policy = {}): number =>
  reserveOf(policyFromEnvironment(env, policy))

describe('the reserve that sizes itself', () => {
  it.each([
    [1, 0],
    [2, 1],
    [3, 1],
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
  ])('of capacity %i is %i', (capacity, reserve) => {
    expect(reserveOf(parsePolicy({ capacity, reserve: 'auto' }))).toBe(reserve)
    expect(reserveFor({}, { capacity })).toBe(reserve)
    expect(reserveOf(modelGatePolicy({ capacity }))).toBe(reserve)
  })

  it('is at least 1 in any real pool and leaves at least one place', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 2, max: 65_536 }),
        fc.double({ min: 0, max: 1, noNaN: true }),
        (capacity, reserveFraction) => {
          const reserve = reserveOf(parsePolicy({ capacity, reserve: 'auto', reserveFraction }))
          expect(reserve).toBeGreaterThanOrEqual(1)
          expect(reserve).toBeLessThanOrEqual(capacity - 1)
        },
      ),
    )
  })
})

describe('the environment', () => {
  it.each([
    ['nothing', {}, 3],
    ['a reserve', { RIGHTOFWAY_RESERVE: '2' }, 2],
    ['a reserve of 0', { RIGHTOFWAY_RESERVE: '0' }, 0],
    ['a reserve above the pool, clamped', { RIGHTOFWAY_RESERVE: '8' }, 7],
    ['a reserve far above, clamped', { RIGHTOFWAY_RESERVE: '9'.repeat(400) }, 7],
    ['a reserve below 0, clamped', { RIGHTOFWAY_RESERVE: '-3' }, 0],
    ['a reserve with space around it', { RIGHTOFWAY_RESERVE: ' +4 ' }, 4],
    ['blanks, which say nothing', { RIGHTOFWAY_RESERVE: ' ', RIGHTOFWAY_RESERVE_FRACTION: '' }, 3],
    ['a fraction', { RIGHTOFWAY_RESERVE_FRACTION: '0.5' }, 4],
    ['a fraction of 0: one place is kept', { RIGHTOFWAY_RESERVE_FRACTION: '0' }, 1],
    ['a fraction of 1: one place is left', { RIGHTOFWAY_RESERVE_FRACTION: '1.0' }, 7],
    ['a fraction that begins with a dot', { RIGHTOFWAY_RESERVE_FRACTION: '.25' }, 2],
    ['both: the reserve wins', { RIGHTOFWAY_RESERVE: '6', RIGHTOFWAY_RESERVE_FRACTION: '0.5' }, 6],
  ])('with %s makes a reserve of 8 places', (_, env, reserve) => {
    expect(reserveFor(env, { capacity: 8 })).toBe(reserve)
  })

  it('wins over a reserve of the policy; a fraction alone does not', () => {
    expect(reserveFor({ RIGHTOFWAY_RESERVE: '1' }, { capacity: 8, reserve: 5 })).toBe(1)
    expect(reserveFor({ RIGHTOFWAY_RESERVE_FRACTION: '0.9' }, { capacity: 8, reserve: 5 })).toBe(5)
  })

  it('keeps nothing of a pool of one', () => {
    expect(reserveFor({ RIGHTOFWAY_RESERVE: '1' }, { capacity: 1 })).toBe(0)
  })

  it('changes nothing else', () => {
    const policy = policyFromEnvironment({ RIGHTOFWAY_RESERVE: '2' }, poolPolicy)
    expect(policy).toEqual({ ...poolPolicy, reserve: 2 })
  })

  it.each([
    ['RIGHTOFWAY_RESERVE', 'two', 'an integer', '"two"'],
    ['RIGHTOFWAY_RESERVE', '2.5', 'an integer', '"2.5"'],
    ['RIGHTOFWAY_RESERVE', '1e3', 'an integer', '"1e3"'],
    ['RIGHTOFWAY_RESERVE_FRACTION', '34%', 'a number in [0, 1]', '"34%"'],
    ['RIGHTOFWAY_RESERVE_FRACTION', '1.01', 'a number in [0, 1]', '"1.01"'],
    ['RIGHTOFWAY_RESERVE_FRACTION', '-0.1', 'a number in [0, 1]', '"-0.1"'],
    ['RIGHTOFWAY_RESERVE_FRACTION', 'NaN', 'a number in [0, 1]', '"NaN"'],
  ])('is refused when %s says %s', (name, value, expected, got) => {
    const read = () => policyFromEnvironment({ [name]: value })
    expect(read).toThrow(InvalidInput)
    expect(read).toThrow(`${name}: expected ${expected}, got ${got}`)
  })

  it('names every fault at once', () => {
    expect(() =>
      policyFromEnvironment({ RIGHTOFWAY_RESERVE: 'x', RIGHTOFWAY_RESERVE_FRACTION: 'y' }),
    ).toThrow(/RIGHTOFWAY_RESERVE: .*; RIGHTOFWAY_RESERVE_FRACTION: /)
  })
})
