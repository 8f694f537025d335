/** What goes, by its size, after what the provider said. */
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { adaptivePolicy, type EvidenceKind, type PolicyInput } from '../../../machines/index.ts'
import { longestSilenceMs } from '../../../machines/scheduling/planner.ts'
import { decodeScope, encodeScope } from '../../../machines/snapshot/codec.ts'
import { runs } from '../../properties/runs.ts'
import { refusalOf, Story } from '../story.ts'

const free: PolicyInput = { ...adaptivePolicy, capacityFloor: null, lingerMs: 0 }
const tokens = (inputTokens: number) => ({ inputTokens })

describe('a stated wait', () => {
  it.each<[string, EvidenceKind]>([
    ['that names no kind', 'unknown-rate-limit'],
    ['of a token limit', 'input-tokens-per-minute'],
    ['of an acceleration limit', 'acceleration'],
    ['for requests', 'requests-per-minute'],
  ])('%s is met when it ends: neither shortened nor lengthened to a boundary', (_, kind) => {
    const story = new Story(free)
    story.primary('p', tokens(20_000))
    story.refuse('p', refusalOf(kind, { retryAfterMs: 1_000 }))
    expect(story.running).toEqual([])
    expect(story.pass(999)).toEqual([])
    story.pass(1)
    if (!story.running.includes('p')) story.pass(Math.min(250, story.wakesInMs ?? 0))
    expect(story.running).toEqual(['p'])
  })

  it('of a large call is none for a small one', () => {
    const story = new Story(free)
    story.primary('first', tokens(60_000))
    story.accept('first')
    story.primary('large', tokens(180_000))
    story.refuse(
      'large',
      refusalOf('input-tokens-per-minute', { retryAfterMs: 30_000, facts: { currentLimit: 200_000 } }),
    )
    expect(story.primary('small', tokens(500))).toEqual(['admit small: primary'])
    expect(story.running).not.toContain('large')
  })

  it('that names no kind and meets a smaller call as well is one for all', () => {
    const story = new Story(free)
    story.primary('large', tokens(180_000))
    story.refuse('large', refusalOf('unknown-rate-limit', { retryAfterMs: 30_000 }))
    story.primary('small', tokens(500))
    if (story.running.includes('small'))
      story.refuse('small', refusalOf('unknown-rate-limit', { retryAfterMs: 29_000 }))
    expect(story.primary('smaller', tokens(10))).toEqual(['defer smaller: behind-others'])
  })
})

describe('a smaller primary', () => {
  const busy = () => {
    const story = new Story(free)
    story.primary('used', tokens(200_000))
    story.accept('used')
    story.settle('used')
    story.primary('large', tokens(150_000))
    story.pass(10)
    story.refuse('large', refusalOf('input-tokens-per-minute'))
    story.pass(5_000)
    return story
  }

  it('passes a larger one that does not fit, and not without end: the larger one keeps what it was promised', () => {
    const story = busy()
    expect(story.running).not.toContain('large')
    const promised = story.context.phase.promise?.byMs as number
    let passed = 0
    for (let index = 0; index < 400 && !story.running.includes('large'); index += 1) {
      if (story.primary(`small-${index}`, tokens(4_000)).some((line) => line.startsWith('admit'))) passed += 1
      story.accept(`small-${index}`)
      story.pass(500)
    }
    expect(passed).toBeGreaterThan(0)
    expect(story.running).toContain('large')
    expect(story.at).toBeLessThanOrEqual(promised + 1_000)
  })
})

describe('room for the next primary', () => {
  const serves = (tokenReserve: PolicyInput['tokenReserve'], primaries: boolean): boolean => {
    const story = new Story({ ...free, ...(tokenReserve === undefined ? {} : { tokenReserve }) })
    story.tell({
      type: 'provider.evidence',
      limits: [
        {
          dimension: 'input-tokens-per-minute',
          limit: 100_000,
          remaining: 60_000,
          resetAtMs: story.at + 24_000,
        },
      ],
    })
    if (primaries) {
      story.primary('p', tokens(50_000))
      story.settle('p')
      story.tell({
        type: 'provider.evidence',
        limits: [
          {
            dimension: 'input-tokens-per-minute',
            limit: 100_000,
            remaining: 60_000,
            resetAtMs: story.at + 24_000,
          },
        ],
      })
    }
    story.pass(5_000)
    story.auxiliary('a', tokens(30_000))
    return story.running.includes('a')
  }

  it.each<[string, PolicyInput['tokenReserve'], boolean, boolean]>([
    ['is kept for one as large as came lately', 'auto', true, false],
    ['is not kept where no primaries come', 'auto', false, true],
    ['is not kept where the policy keeps none', 0, true, true],
    ['is kept as much as the policy says', 50_000, false, false],
  ])('%s', (_, tokenReserve, primaries, goes) => {
    expect(serves(tokenReserve, primaries)).toBe(goes)
  })
})

const anyKind = fc.constantFrom<EvidenceKind>(
  'acceleration',
  'input-tokens-per-minute',
  'tokens-per-minute',
  'unknown-rate-limit',
  'overloaded',
  'requests-per-minute',
)
const anyMove = fc.oneof(
  fc.record({
    do: fc.constant('submit' as const),
    primary: fc.boolean(),
    tokens: fc.oneof(fc.integer({ min: 0, max: 300_000 }), fc.integer({ min: 0, max: 3 })),
  }),
  fc.record({
    do: fc.constant('refuse' as const),
    kind: anyKind,
    waitMs: fc.option(fc.integer({ min: 0, max: 90_000 })),
    limit: fc.option(fc.integer({ min: 0, max: 400_000 })),
    next: fc.option(fc.integer({ min: 0, max: 400_000 })),
  }),
  fc.record({ do: fc.constant('accept' as const) }),
  fc.record({ do: fc.constant('settle' as const), used: fc.option(fc.integer({ min: 0, max: 300_000 })) }),
  fc.record({
    do: fc.constant('read' as const),
    limit: fc.integer({ min: 0, max: 900_000 }),
    remaining: fc.integer({ min: 0, max: 900_000 }),
    resetMs: fc.integer({ min: 0, max: 90_000 }),
  }),
  fc.record({ do: fc.constant('pass' as const), ms: fc.integer({ min: 1, max: 130_000 }) }),
)
type Move = typeof anyMove extends fc.Arbitrary<infer T> ? T : never

/** Whatever happens to a scope that the provider answers. */
const live = (moves: ReadonlyArray<Move>, policy: PolicyInput): Story => {
  const story = new Story({ ...free, maxAttempts: 1_000, ...policy })
  let made = 0
  for (const move of moves) {
    const running = story.running[0]
    if (move.do === 'submit')
      story.submit({
        id: `c${made++}`,
        lane: move.primary ? 'primary' : 'auxiliary',
        inputTokens: move.tokens,
      })
    else if (move.do === 'pass') story.pass(move.ms)
    else if (move.do === 'read')
      story.tell({
        type: 'provider.evidence',
        limits: [
          {
            dimension: 'input-tokens-per-minute',
            limit: move.limit,
            remaining: move.remaining,
            resetAtMs: story.at + move.resetMs,
          },
        ],
      })
    else if (running === undefined) continue
    else if (move.do === 'accept') story.accept(running)
    else if (move.do === 'settle')
      story.settle(
        running,
        'completed',
        move.used === null ? undefined : { inputTokens: move.used, outputTokens: 1 },
      )
    else
      story.refuse(
        running,
        refusalOf(move.kind, {
          retryAfterMs: move.waitMs,
          facts: {
            ...(move.limit === null ? {} : { currentLimit: move.limit }),
            ...(move.next === null ? {} : { nextLimit: move.next }),
          },
        }),
      )
  }
  return story
}

/** Holds a story, in which nothing more happens, to its word: every waiting call is tried, one after the other. */
const everyCallIsTried = (story: Story): void => {
  for (const id of story.running) story.settle(id)
  // A wait that the provider stated counts even where the belief says that the call fits.
  const statedMs = 90_000
  const calls = story.waiting.length
  for (let turn = 0; turn <= calls && story.waiting.length > 0; turn += 1) {
    const before = story.at
    while (story.running.length === 0 && story.at - before <= longestSilenceMs + statedMs) {
      expect(story.wakesInMs).not.toBeNull()
      story.pass(Math.max(1, story.wakesInMs as number))
    }
    expect(story.running.length).toBeGreaterThan(0)
    for (const id of story.running) story.settle(id)
  }
  expect(story.waiting).toEqual([])
}

describe('no belief falls silent for ever', () => {
  it('whatever the history, every waiting call is tried within a stated time while nothing else happens', () => {
    fc.assert(
      fc.property(
        fc.array(anyMove, { maxLength: 50 }),
        fc.constantFrom('quiet', 'holdSteady', 'stepUp', 'backfill', 'adaptive' as const),
        (moves, strategy) => everyCallIsTried(live(moves, { strategy: strategy as 'quiet' })),
      ),
      { numRuns: runs(250) },
    )
  })

  it('nor does room that is kept for a primary: where it comes back too slowly, background goes without it', () => {
    const submit = (primary: boolean, count: number): Move => ({ do: 'submit', primary, tokens: count })
    const moves: Move[] = [
      { do: 'read', limit: 1, remaining: 17, resetMs: 0 },
      submit(false, 0),
      submit(true, 16),
      submit(false, 0),
    ]
    everyCallIsTried(live(moves, { strategy: 'quiet' }))
  })

  it('and a belief is the same out of its snapshot, in at most 10 KB, every number finite', () => {
    fc.assert(
      fc.property(fc.array(anyMove, { minLength: 10, maxLength: 120 }), (moves) => {
        const story = live(moves, {})
        const encoded = encodeScope(story.context)
        const text = JSON.stringify(encoded.belief)
        expect(text.length).toBeLessThanOrEqual(10_000)
        expect(decodeScope(JSON.parse(JSON.stringify(encoded))).belief).toEqual(story.context.belief)
      }),
      { numRuns: runs(120) },
    )
  })
})
