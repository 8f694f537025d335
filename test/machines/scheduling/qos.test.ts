/** Shedding on a shared server: which calls, for which reason, and when to come back. */
import { HashMap } from 'effect'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { classCeiling, limitsOf } from '../../../machines/limits/shed-limits.ts'
import { poolPolicy } from '../../../machines/model/presets.ts'
import { errorOf } from '../../../src/host/errors.ts'
import { runs } from '../../properties/runs.ts'
import { Story } from '../story.ts'
import { ask, classes, ingest, limitsFor, server } from './shedding.ts'

describe('limits', () => {
  it.each([
    [1, 1, 1, 4, 1],
    [3, 1, 1, 4, 3],
    [8, 1, 2, 4, 8],
    [16, 2, 4, 4, 16],
    [32, 4, 8, 8, 32],
    [100, 12, 25, 25, 100],
  ])(
    'of %i places: bands of %i, %i calls of a principal, bursts of %i, %i a second',
    (capacity, bandPlaces, principalCalls, burstCalls, callsPerSecond) => {
      const expected = { capacity, bandPlaces, principalCalls, burstCalls, callsPerSecond }
      expect(limitsFor(capacity)).toEqual(expected)
    },
  )

  it('are what the operator says instead', () => {
    const chosen = { bandPlaces: 2, principalCalls: 5, burstCalls: 7, callsPerSecond: 0.5 }
    expect(limitsOf(chosen, 16)).toEqual({ capacity: 16, ...chosen })
  })
})

describe('the ceilings', () => {
  it.each([
    [8, [5, 6, 7, 8]],
    [16, [10, 12, 14, 16]],
    [32, [20, 24, 28, 32]],
    [3, [1, 1, 2, 3]],
    [2, [1, 1, 1, 2]],
    [1, [1, 1, 1, 1]],
  ])('of %i places are %j, lowest class first: never below 1', (capacity, ceilings) => {
    expect(classes.map((priorityClass) => classCeiling(limitsFor(capacity), priorityClass))).toEqual(ceilings)
  })

  it.each(classes.map((priorityClass, index) => [priorityClass, 5 + index] as const))(
    'shed %s at %i live calls of 8',
    (priorityClass, ceiling) => {
      const story = server(8)
      for (let live = 0; live < ceiling; live += 1) expect(ask(story, `i${live}`, 'interactive')).toBeNull()
      expect(ask(story, 'asks', priorityClass)).toBe('class-ceiling')
      story.settle('i0')
      expect(ask(story, 'again', priorityClass)).toBeNull()
    },
  )

  it.each([1, 2, 3])('leave ingest a place in a pool of %i when nothing higher contends', (capacity) => {
    expect(ask(server(capacity), 'a', ingest)).toBeNull()
  })
})

describe('a principal', () => {
  it('is held to its quota: a quarter of the places', () => {
    const story = server(8)
    expect(ask(story, 'a1', 'interactive', 'a')).toBeNull()
    expect(ask(story, 'a2', 'interactive', 'a')).toBeNull()
    expect(ask(story, 'a3', 'interactive', 'a')).toBe('principal-quota')
    expect(ask(story, 'b1', 'interactive', 'b')).toBeNull()
  })

  it('is held to its fair share once places are scarce: 16 places between 11 are 1 each', () => {
    const story = server(16)
    for (let index = 0; index < 10; index += 1) ask(story, `i${index}`, 'interactive', `p${index}`)
    expect(ask(story, 'fresh', 'orchestration', 'p10')).toBeNull()
    expect(ask(story, 'second', 'orchestration', 'p10')).toBe('fair-share')
    expect(ask(story, 'person', 'interactive', 'p10')).toBeNull()
  })

  it.each([
    ['not yet with 9 of 16 places in use', 9, null],
    ['from 10 of 16 places on', 10, 'fair-share'],
  ])('is held to it %s', (_, live, expected) => {
    const story = server(16)
    ask(story, 'first', 'orchestration', 'own')
    for (let index = 1; index < live; index += 1) ask(story, `i${index}`, 'interactive', `p${index}`)
    expect(ask(story, 'second', 'orchestration', 'own')).toBe(expected)
  })

  it('has a share of three where five share 16 places, and no more', () => {
    const story = server(16)
    for (let index = 0; index < 10; index += 1) ask(story, `i${index}`, 'interactive', `p${index % 5}`)
    expect(ask(story, 'third', 'orchestration', 'p0')).toBeNull()
    expect(ask(story, 'fourth', 'orchestration', 'p0')).toBe('fair-share')
  })

  it('has its quota to itself while places are plenty', () => {
    const story = server(16)
    for (let index = 0; index < 8; index += 1) ask(story, `i${index}`, 'interactive', `p${index}`)
    expect(ask(story, 'first', 'orchestration', 'p8')).toBeNull()
    expect(ask(story, 'second', 'orchestration', 'p8')).toBeNull()
  })

  it('has a bucket of its own for each class, isolated from all others', () => {
    const story = server(8, { principalCalls: 8 })
    for (let call = 0; call < 4; call += 1) {
      expect(ask(story, `a${call}`, ingest, 'a')).toBeNull()
      story.settle(`a${call}`)
    }
    expect(ask(story, 'a4', ingest, 'a')).toBe('bucket-empty')
    expect(ask(story, 'h', 'hydration', 'a')).toBeNull()
    expect(ask(story, 'b', ingest, 'b')).toBeNull()
  })

  it('is told when its bucket holds the next call, to the millisecond', () => {
    const story = server(8, { principalCalls: 8 })
    for (let call = 0; call < 4; call += 1) ask(story, `a${call}`, ingest, 'a')
    for (let call = 0; call < 4; call += 1) story.settle(`a${call}`)
    ask(story, 'a4', ingest, 'a')
    expect(story.context.decisions[0]?.retryAfterMs).toBe(125)
    story.pass(124)
    expect(ask(story, 'a5', ingest, 'a')).toBe('bucket-empty')
    expect(story.context.decisions[0]?.retryAfterMs).toBe(1)
    story.pass(1)
    expect(ask(story, 'a6', ingest, 'a')).toBeNull()
  })

  it('that sends one call after the other is limited too: its bucket stays while it has nothing in flight', () => {
    const story = server(8)
    let entered = 0
    for (let call = 0; call < 100; call += 1) {
      if (ask(story, `a${call}`, ingest, 'a') === null) {
        entered += 1
        story.settle(`a${call}`)
      }
      story.pass(10)
    }
    // A burst of 4, and 8 a second for 0.99 s.
    expect(entered).toBe(11)
  })

  it.each([1, 3, 7, 32, 1_000, 10_000])(
    'has its whole burst, neither more nor less, when %i calls come in a second',
    (callsPerSecond) => {
      const story = server(1_024, { principalCalls: 1_024, burstCalls: 100, callsPerSecond })
      // A time as it is today, where a number holds a quarter of a microsecond.
      story.at = 1_800_000_000_123
      for (let call = 0; call < 100; call += 1) expect(ask(story, `a${call}`, ingest, 'a')).toBeNull()
      expect(ask(story, 'a100', ingest, 'a')).toBe('bucket-empty')
    },
  )
})

describe('what is looked for first', () => {
  it('is the quota, the ceiling, the fair share, the bucket', () => {
    const story = server(8)
    const found: Array<string | null> = []
    for (const id of ['x1', 'x2']) ask(story, id, 'interactive', 'x')
    for (let index = 0; index < 3; index += 1) ask(story, `i${index}`, 'interactive')
    found.push(ask(story, 'x3', ingest, 'x'))
    found.push(ask(story, 'new', ingest, 'new'))
    for (const id of ['y1', 'y2']) found.push(ask(story, id, 'orchestration', 'y'))
    expect(found).toEqual(['principal-quota', 'class-ceiling', null, 'fair-share'])
  })

  it.each([
    ['the ceiling before the bucket', 5, 'class-ceiling'],
    ['the bucket last', 4, 'bucket-empty'],
  ])('is %s', (_, others, expected) => {
    const story = server(8, { burstCalls: 1 })
    ask(story, 'a1', ingest, 'a')
    story.settle('a1')
    for (let index = 0; index < others; index += 1) ask(story, `i${index}`, 'interactive')
    expect(ask(story, 'a2', ingest, 'a')).toBe(expected)
  })

  it('is the fair share before the bucket', () => {
    const story = server(8, { burstCalls: 1 })
    for (let index = 0; index < 5; index += 1) ask(story, `i${index}`, 'interactive')
    expect(ask(story, 'y1', 'orchestration', 'y')).toBeNull()
    expect(ask(story, 'y2', 'orchestration', 'y')).toBe('fair-share')
    story.settle('y1')
    expect(ask(story, 'y3', 'orchestration', 'y')).toBe('bucket-empty')
  })
})

describe('a refusal', () => {
  it.each([
    ['principal-quota', 'BUSY: the principal has its quota of calls in use, retry with backoff'],
    ['class-ceiling', 'BUSY: the places left are kept for higher classes, retry with backoff'],
    ['fair-share', 'BUSY: the principal has its fair share of the places in use, retry with backoff'],
    ['bucket-empty', 'BUSY: the principal sends calls of this class too fast, retry with backoff'],
  ] as const)('for %s says %s', (reason, message) => {
    const at = 1_000
    const decision = { callId: 'a', verdict: 'reject', reason, at, state: 'idle', retryAfterMs: 125 } as const
    const error = errorOf('engine', decision)
    expect(error).toMatchObject({
      _tag: 'Shed',
      scope: 'engine',
      callId: 'a',
      reason,
      retryAfterMs: 125,
      message,
    })
  })

  it('carries a first backoff where no time is known', () => {
    const story = server(1, {}, { pacingBaseMs: 400 })
    ask(story, 'i', 'interactive')
    ask(story, 'a', ingest)
    expect(story.context.decisions).toEqual([
      {
        callId: 'a',
        verdict: 'reject',
        reason: 'class-ceiling',
        at: story.at,
        state: 'settled',
        retryAfterMs: 400,
      },
    ])
  })

  it('charges nothing, and the same id may ask again', () => {
    const story = server(1)
    ask(story, 'i', 'interactive')
    for (let turn = 0; turn < 20; turn += 1) expect(ask(story, 'a', ingest)).toBe('class-ceiling')
    story.settle('i')
    expect(ask(story, 'a', ingest)).toBeNull()
    expect(story.context.counters.rejected).toBe(20)
  })
})

describe('a call inside another', () => {
  it('is neither shed nor counted: it runs in the place of the one that made it', () => {
    const story = server(2)
    ask(story, 'outer', 'orchestration', 'a')
    expect(ask(story, 'inner', 'orchestration', 'a', { parentId: 'outer' })).toBeNull()
    expect(story.running).toEqual(['outer', 'inner'])
    expect(story.context.qos?.total).toBe(1)
    expect(ask(story, 'other', 'orchestration', 'a')).toBe('principal-quota')
    const restored = story.restarted()
    restored.settle('inner')
    restored.settle('outer')
    expect(restored.context.qos?.total).toBe(0)
  })

  it('is a call like any other once the one that made it has ended', () => {
    const story = server(2)
    ask(story, 'i', 'interactive', 'a')
    expect(ask(story, 'late', 'orchestration', 'a', { parentId: 'gone' })).toBe('principal-quota')
  })
})

describe('without limits', () => {
  it('nothing is shed and nothing is kept', () => {
    const story = new Story({ ...poolPolicy, capacity: 1 })
    for (let call = 0; call < 50; call += 1) expect(ask(story, `a${call}`, ingest, 'a')).toBeNull()
    expect(story.context.qos).toBeNull()
  })

  it('that are given later count the calls that are live already', () => {
    const story = new Story({ ...poolPolicy, capacity: 8, reserve: 0 })
    for (const id of ['a1', 'a2']) ask(story, id, ingest, 'a')
    ask(story, 'inner', ingest, 'a', { parentId: 'a1' })
    story.change({ qos: {} })
    expect(story.context.qos?.total).toBe(2)
    expect(ask(story, 'a3', ingest, 'a')).toBe('principal-quota')
    story.settle('inner')
    story.settle('a1')
    expect(ask(story, 'a4', ingest, 'a')).toBeNull()
    story.change({ qos: null })
    expect(story.context.qos).toBeNull()
  })

  it('that are changed keep what was counted', () => {
    const story = server(8, { principalCalls: 8 })
    for (let call = 0; call < 4; call += 1) expect(ask(story, `a${call}`, ingest, 'a')).toBeNull()
    story.change({ qos: { principalCalls: 7 } })
    expect(story.context.qos?.total).toBe(4)
    expect(ask(story, 'a4', ingest, 'a')).toBe('bucket-empty')
  })
})

describe('a restart', () => {
  it('keeps quotas and buckets', () => {
    const before = server(8)
    for (const id of ['a1', 'a2']) ask(before, id, ingest, 'a')
    const story = before.restarted()
    expect(ask(story, 'a3', ingest, 'a')).toBe('principal-quota')
    story.settle('a1')
    story.settle('a2')
    expect([ask(story, 'a4', ingest, 'a'), ask(story, 'a5', ingest, 'a')]).toEqual([null, null])
    story.settle('a4')
    expect(ask(story, 'a6', ingest, 'a')).toBe('bucket-empty')
  })
})

describe('whatever is asked', () => {
  it('the counted calls are the live calls, and no class is let in at its ceiling', () => {
    const move = fc.record({
      priorityClass: fc.constantFrom(...classes),
      principal: fc.constantFrom('a', 'b', 'c', 'd', 'e'),
      ends: fc.nat({ max: 3 }),
      ms: fc.nat({ max: 400 }),
    })
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 24 }), fc.array(move, { maxLength: 80 }), (capacity, moves) => {
        const story = server(capacity)
        for (const [index, { priorityClass, principal, ends, ms }] of moves.entries()) {
          const live = story.running.length + story.waiting.length
          if (ask(story, `c${index}`, priorityClass, principal) === null)
            expect(live).toBeLessThan(classCeiling(limitsFor(capacity), priorityClass))
          for (const id of story.running.slice(0, ends)) story.settle(id)
          story.pass(ms)
          const { total, byPrincipal } = story.context.qos!
          expect(total).toBe(story.running.length + story.waiting.length)
          expect([...HashMap.values(byPrincipal)].reduce((sum, own) => sum + own, 0)).toBe(total)
        }
      }),
      { numRuns: runs(60) },
    )
  })
})
