/** Lower primaries age: better ones hold them for a time that the policy states, and are passed once each at most. */
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { type PriorityClass, parsePolicy, worstCaseWaitMs } from '../../../machines/index.ts'
import { runs } from '../../properties/runs.ts'
import { Story } from '../story.ts'

const policy = {
  capacity: 1,
  reserve: 0,
  inFlight: 'tolerate',
  hold: 'untilSettled',
  quietWindowMs: 0,
  maxRankDeferralMs: 10_000,
} as const

interface Served {
  readonly id: string
  readonly waitedMs: number
  /** Lower ones that were granted while it waited. */
  readonly passedBy: number
}

/** One place, calls of `runMs` each, an interactive call always waiting (`depth` of them), and others as they come. */
const stream = (
  over: object,
  depth: number,
  runMs: number,
  lower: ReadonlyArray<[number, PriorityClass]>,
) => {
  const story = new Story({ ...policy, ...over })
  const came = new Map<string, { atMs: number; lowerBefore: number }>()
  const served: Served[] = []
  let lowerGranted = 0
  let count = 0
  const submit = (id: string, priorityClass: PriorityClass) => {
    came.set(id, { atMs: story.at, lowerBefore: lowerGranted })
    story.primary(id, { priorityClass })
  }
  const begunMs = story.at
  const todo = [...lower]
  let running: string | undefined
  while (story.at < begunMs + 200_000) {
    while (story.waiting.filter((id) => id.startsWith('i')).length < depth)
      submit(`i${count++}`, 'interactive')
    while (todo.length > 0 && story.at - begunMs >= todo[0]![0]) submit(`l${count++}`, todo.shift()![1])
    const [id] = story.running
    if (id !== undefined && id !== running) {
      const { atMs, lowerBefore } = came.get(id)!
      served.push({ id, waitedMs: story.at - atMs, passedBy: lowerGranted - lowerBefore })
      if (id.startsWith('l')) lowerGranted += 1
      running = id
    }
    story.pass(runMs)
    if (id !== undefined) story.settle(id)
  }
  return served
}

describe('a lower primary behind an endless interactive stream', () => {
  it.each(['hydration', 'orchestration'] as const)(
    'of %s is served when its bound has passed',
    (priorityClass) => {
      const served = stream({}, 2, 1_000, [[500, priorityClass]])
      const lower = served.find(({ id }) => id.startsWith('l'))
      expect(lower?.waitedMs).toBeGreaterThanOrEqual(10_000)
      expect(lower?.waitedMs).toBeLessThanOrEqual(13_000)
    },
  )

  it('is never served where the policy states none, as scopes of older journals', () => {
    const served = stream({ maxRankDeferralMs: null }, 1, 1_000, [[500, 'hydration']])
    expect(served.some(({ id }) => id.startsWith('l'))).toBe(false)
    expect(
      worstCaseWaitMs(parsePolicy({ maxRankDeferralMs: null }), {
        lane: 'primary',
        priorityClass: 'hydration',
      }),
    ).toBe(Number.POSITIVE_INFINITY)
  })

  it('wakes the scope when it has aged, though no call ends then', () => {
    const story = new Story({ ...policy, capacity: 2, limits: { inputTokensPerMinute: 600 } })
    story.primary('a', { inputTokens: 600 })
    story.primary('large', { inputTokens: 600 })
    story.primary('small', { priorityClass: 'hydration', inputTokens: 10 })
    expect(story.pass(9_999)).toEqual([])
    expect(story.pass(1)).toEqual(['release small: primary'])
  })

  it('keeps its age over a restart', () => {
    const story = new Story({ ...policy, capacity: 2, limits: { inputTokensPerMinute: 600 } })
    story.primary('a', { inputTokens: 600 })
    story.primary('large', { inputTokens: 600 })
    story.primary('small', { priorityClass: 'hydration', inputTokens: 10 })
    story.pass(6_000)
    // The restarted one goes on from its last event, at which all of them came.
    const later = story.restarted()
    expect(later.pass(9_999)).toEqual([])
    expect(later.pass(1)).toEqual(['release small: primary'])
  })
})

it('whatever comes, an interactive call is passed by one lower call at most, and every rank keeps within its bound', () => {
  const lower = fc.array(
    fc.tuple(
      fc.integer({ min: 0, max: 60_000 }),
      fc.constantFrom<PriorityClass>('orchestration', 'hydration', 'background_ingestion'),
    ),
    { maxLength: 5 },
  )
  fc.assert(
    fc.property(
      lower,
      fc.integer({ min: 1, max: 4 }),
      fc.integer({ min: 200, max: 3_000 }),
      (list, depth, runMs) => {
        const served = stream(
          {},
          depth,
          runMs,
          [...list].sort(([one], [other]) => one - other),
        )
        const lowest = served.filter(({ id }) => id.startsWith('l'))
        for (const { id, passedBy, waitedMs } of served) {
          if (id.startsWith('i')) {
            expect(passedBy).toBeLessThanOrEqual(1)
            const boundMs = worstCaseWaitMs(parsePolicy(policy), {
              lane: 'primary',
              priorityClass: 'interactive',
              callsAhead: depth - 1,
              placeEveryMs: runMs,
            })
            expect(waitedMs).toBeLessThanOrEqual(boundMs + runMs)
          } else {
            const boundMs = worstCaseWaitMs(parsePolicy(policy), {
              lane: 'primary',
              priorityClass: 'hydration',
              callsAhead: list.length - 1,
              betterWaiting: depth,
              placeEveryMs: runMs,
            })
            expect(waitedMs).toBeLessThanOrEqual(boundMs)
          }
        }
        expect(lowest.length).toBeGreaterThan(list.length === 0 ? -1 : 0)
      },
    ),
    { numRuns: runs(60) },
  )
})
