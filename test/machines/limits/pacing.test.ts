/** Pacing: a class that the provider refuses backs off alone, and one call finds out when it is over. */
import { describe, expect, it } from 'vitest'
import { poolPolicy, priorityClasses } from '../../../machines/index.ts'
import {
  accepted,
  backoffMs,
  counted,
  type Pace,
  paceAllows,
  refused,
  steady,
  warmFromMs,
} from '../../../machines/limits/pacing.ts'
import { seededRandom } from '../../../src/simulation/random.ts'
import { refusalOf, Story } from '../story.ts'

const bounds = { pacingBaseMs: 250, pacingMaxMs: 30_000 }
const pool = { ...poolPolicy, ...bounds, capacity: 16, reserve: 0, maxAttempts: 1_000 } as const

/** Refused once more, by a call that left after the last refusal. */
const again = (pace: Pace, atMs: number): Pace =>
  refused(pace, bounds, { atMs, dispatchedAtMs: atMs, salt: 7 })

const windowMs = (pace: Pace, atMs: number): number => pace.pausedUntilMs - atMs

describe('the backoff', () => {
  it.each([
    [1, 250],
    [2, 500],
    [3, 1_000],
    [7, 16_000],
    [8, 30_000],
    [9, 30_000],
    [1_025, 30_000],
    [Number.MAX_SAFE_INTEGER, 30_000],
  ])(
    'after %i refusals in a row is at most %i ms and at least half of it, whatever the jitter',
    (refusals, most) => {
      for (let salt = 0; salt < 500; salt += 1) {
        const ms = backoffMs(bounds, refusals, salt)
        expect(ms).toBeLessThanOrEqual(most)
        expect(ms).toBeGreaterThanOrEqual(most / 2)
      }
    },
  )

  it('spreads over its range: calls that were refused together do not come back together', () => {
    const spread = new Set(Array.from({ length: 200 }, (_, salt) => backoffMs(bounds, 8, salt)))
    expect(spread.size).toBeGreaterThan(150)
  })

  it('is the same for the same history: nothing is drawn', () => {
    expect(backoffMs(bounds, 3, 42)).toBe(backoffMs(bounds, 3, 42))
  })

  it('grows with every refusal after its window until it reaches its limit', () => {
    let pace = steady
    let atMs = 0
    const windows: number[] = []
    for (let refusal = 0; refusal < 8; refusal += 1) {
      pace = again(pace, atMs)
      windows.push(windowMs(pace, atMs))
      atMs = pace.pausedUntilMs
    }
    const growing = windows.slice(0, 7)
    expect(growing).toEqual([...growing].sort((one, other) => one - other))
    for (const window of windows.slice(7)) expect(window).toBeGreaterThanOrEqual(15_000)
  })

  it('does not overflow: after 1,025 refusals the window is finite and within its limit', () => {
    let pace = steady
    let atMs = 0
    for (let refusal = 0; refusal < 1_025; refusal += 1) {
      pace = again(pace, atMs)
      expect(windowMs(pace, atMs)).toBeLessThanOrEqual(30_000)
      atMs = pace.pausedUntilMs
    }
    expect(pace.refusals).toBe(1_025)
  })

  it('counts one burst once: 8 parallel refusals give the window of one', () => {
    const one = again(steady, 1_000)
    let burst = steady
    for (let index = 0; index < 8; index += 1) {
      burst = refused(burst, bounds, { atMs: 1_000 + index, dispatchedAtMs: 900, salt: 7 })
    }
    expect(burst).toEqual(one)
  })

  it('ends at once with an acceptance, unless that call left before the last refusal', () => {
    const pace = again(again(steady, 10), 1_000)
    expect(accepted(pace, 999)).toBe(pace)
    expect(accepted(pace, 1_000)).toBe(pace)
    expect(accepted(pace, 2_000)).toMatchObject({ refusals: 0, window: 2 })
    expect(accepted(steady, 5)).toBe(steady)
  })

  it('comes back through a window that grows by one with every acceptance until it limits nothing', () => {
    let pace = again(steady, 10)
    const windows: Array<number | null> = []
    for (let acceptance = 0; acceptance < 65; acceptance += 1) {
      pace = accepted(pace, 1_000)
      windows.push(pace.window)
    }
    expect(windows.slice(0, 3)).toEqual([2, 3, 4])
    expect(windows.at(-2)).toBe(null)
    expect(again({ ...steady, refusals: 0, window: 9 }, 10).window).toBe(1)
  })

  it('counts what left in the very moment of the last refusal to its burst', () => {
    const pace = again(steady, 1_000)
    const refusal = { atMs: 1_500, salt: 7 }
    expect(refused(pace, bounds, { ...refusal, dispatchedAtMs: 1_000 })).toBe(pace)
    expect(refused(pace, bounds, { ...refusal, dispatchedAtMs: 1_001 }).refusals).toBe(2)
  })

  const usual = { ...steady, spanMs: 20_000 }
  it.each([
    ['begins with three quarters of what rows take', usual, 2_000, 15_000, 2_000],
    [
      'goes on with a fifth of it',
      { ...usual, refusals: 1, sinceMs: 500, epochMs: 1_000 },
      2_000,
      4_000,
      500,
    ],
    ['never pauses longer than the policy says', { ...usual, spanMs: 900_000 }, 2_000, 30_000, 2_000],
    [
      'never ends a pause that is longer',
      { ...usual, refusals: 1, sinceMs: 500, epochMs: 1_000, pausedUntilMs: 12_000 },
      2_000,
      10_000,
      500,
    ],
  ])('a row of refusals %s', (_, pace, atMs, pauseMs, sinceMs) => {
    expect(again(pace, atMs)).toMatchObject({ pausedUntilMs: atMs + pauseMs, sinceMs, epochMs: atMs })
  })

  it.each([
    ['the first row', { refusals: 1, sinceMs: 1_000, spanMs: 0 }, 5_000],
    ['a row by 3 in 10', { refusals: 2, sinceMs: 1_000, spanMs: 10_000 }, 8_500],
    ['nothing without a row', { refusals: 0, sinceMs: 1_000, spanMs: 10_000 }, 10_000],
  ])('an acceptance teaches how long rows last: %s', (_, row, spanMs) => {
    expect(accepted({ ...steady, window: 3, ...row }, 6_000)).toMatchObject({
      refusals: 0,
      window: 4,
      spanMs,
    })
  })

  it.each([
    ['at once, where nothing was refused', { refusals: 0, epochMs: 1_000, pausedUntilMs: 9_000 }, 0],
    ['a second and a half after the refusal', { refusals: 1, epochMs: 1_000, pausedUntilMs: 9_000 }, 2_500],
    [
      'when its pause ends, where that is sooner',
      { refusals: 1, epochMs: 1_000, pausedUntilMs: 2_000 },
      2_000,
    ],
  ])('in a warm-up it goes on %s', (_, over, ms) => {
    expect(warmFromMs({ ...steady, ...over })).toBe(ms)
  })

  const open = { ...steady, refusals: 1, pausedUntilMs: 10, window: 1 }
  it.each([
    ['when nothing was refused', steady, 0, true],
    ['within the pause', open, 9, false],
    ['after the pause, as its probe', open, 10, true],
    ['while the probe is out', { ...open, out: 1 }, 11, false],
    [
      'after an acceptance, as long as its window has room',
      { ...open, refusals: 0, window: 3, out: 2 },
      0,
      true,
    ],
    ['after an acceptance, when its window is full', { ...open, refusals: 0, window: 3, out: 3 }, 0, false],
  ])('%s, a call may go: see the table', (_, pace, atMs, may) => {
    expect(paceAllows(pace, atMs)).toBe(may)
  })

  it('counts the calls that are out, and never fewer than 0', () => {
    expect(counted(counted(open, 1), -1)).toEqual(open)
    expect(counted(open, -1).out).toBe(0)
  })

  it('learns how long rows of refusals last, and begins the next with most of it', () => {
    let pace = steady
    for (let row = 1; row < 13; row += 1) {
      const startMs = row * 100_000
      pace = again(pace, startMs)
      pace = accepted(pace, startMs + 8_000)
    }
    expect(pace.spanMs).toBe(8_000)
    expect(windowMs(again(pace, 9_000_000), 9_000_000)).toBe(6_000)
  })
})

describe('a class that the provider refuses', () => {
  const crowd = (policy = {}): Story => {
    const story = new Story({ ...pool, ...policy })
    for (let index = 0; index < 8; index += 1) story.auxiliary(`a${index}`, { principal: `p${index}` })
    story.pass(5)
    return story
  }

  it('waits as one: 8 refusals of one burst pause it once, for one base window', () => {
    const story = crowd()
    for (let index = 0; index < 8; index += 1) {
      expect(story.refuse(`a${index}`)).toEqual([`defer a${index}: refused-by-provider`])
    }
    expect(story.context.pacing.background_ingestion?.refusals).toBe(1)
    expect(story.wakesInMs).toBeLessThanOrEqual(250)
    expect(story.auxiliary('later')).toEqual(['defer later: pacing'])
  })

  it('sends one probe after its pause, then two with its acceptance, then three', () => {
    const story = crowd()
    for (let index = 0; index < 8; index += 1) story.refuse(`a${index}`)
    expect(story.pass(250)).toEqual(['release a0: open'])
    expect(story.running).toEqual(['a0'])
    story.pass(60_000)
    expect(story.running).toEqual(['a0'])
    expect(story.accept('a0')).toEqual(['release a1: open', 'release a2: open'])
    expect(story.accept('a1')).toEqual(['release a3: open', 'release a4: open'])
    expect(story.accept('a2')).toEqual(['release a5: open', 'release a6: open'])
  })

  it.each([
    ['is refused: the window doubles', (story: Story) => story.refuse('a0'), 2],
    ['fails: the next one probes', (story: Story) => story.settle('a0', 'failed'), 1],
    ['is cancelled: the next one probes', (story: Story) => story.settle('a0', 'cancelled'), 1],
    ['is withdrawn: the next one probes', (story: Story) => story.withdraw('a0'), 1],
  ])('whose probe %s', (_, end, refusals) => {
    const story = crowd()
    for (let index = 0; index < 8; index += 1) story.refuse(`a${index}`)
    story.pass(250)
    end(story)
    expect(story.context.pacing.background_ingestion?.refusals).toBe(refusals)
    story.pass(500)
    expect(story.running).toHaveLength(1)
  })

  it('a refusal that waiting does not mend paces nobody', () => {
    const story = crowd()
    story.refuse('a0', refusalOf('quota-exhausted', { retryable: false }))
    expect(story.auxiliary('later')).toEqual(['admit later: open'])
  })

  it('an empty answer counts as accepted', () => {
    const story = crowd()
    story.refuse('a0')
    story.pass(250)
    expect(story.running).toContain('a0')
    story.settle('a0')
    expect(story.context.pacing.background_ingestion?.refusals).toBe(0)
  })

  it('leaves the other classes alone: primaries go while background is paced', () => {
    const story = crowd()
    for (let index = 0; index < 8; index += 1) story.refuse(`a${index}`)
    for (const priorityClass of ['interactive', 'orchestration', 'hydration'] as const) {
      expect(story.primary(priorityClass, { priorityClass })).toEqual([`admit ${priorityClass}: primary`])
    }
  })

  it.each(priorityClasses)('%s leaves every other class of the same lane alone', (refusedClass) => {
    const lane = 'auxiliary'
    const story = new Story(pool)
    story.submit({ id: 'r', lane, priorityClass: refusedClass })
    story.pass(5)
    story.refuse('r')
    const landed = priorityClasses.map((priorityClass, index) => {
      const [decision] = story.submit({ id: `x${index}`, lane, priorityClass, principal: `x${index}` })
      return decision?.startsWith('admit') ?? false
    })
    expect(landed).toEqual(priorityClasses.map((priorityClass) => priorityClass !== refusedClass))
  })

  it('is woken when its pause ends, also behind a principal that is at its quota', () => {
    const story = new Story({ ...pool, principalQuota: 1 })
    story.auxiliary('b1', { principal: 'b' })
    for (const id of ['a1', 'a2']) story.auxiliary(id, { principal: 'a', priorityClass: 'hydration' })
    story.pass(5)
    story.refuse('b1')
    expect(story.wakesInMs).toBeLessThanOrEqual(250)
    story.pass(250)
    expect(story.running).toContain('b1')
  })

  it('leaves the same class of another scope alone', () => {
    const [one, other] = [new Story(pool), new Story(pool)]
    one.auxiliary('a')
    one.refuse('a')
    expect(other.auxiliary('b')).toEqual(['admit b: open'])
  })

  it('is not sent before the time that the provider states, and a shorter one later does not shorten it', () => {
    const story = crowd()
    story.refuse('a0', refusalOf('overloaded', { retryAfterMs: 20_000 }))
    story.refuse('a1', refusalOf('overloaded', { retryAfterMs: 1_000 }))
    expect(story.reasonOf('a0')).toBe('provider-wait')
    expect(story.pass(19_999)).toEqual([])
    expect(story.pass(1)).not.toEqual([])
  })

  it('still waits after a restart, exactly as long', () => {
    const before = crowd()
    for (let index = 0; index < 8; index += 1) before.refuse(`a${index}`)
    const story = before.restarted()
    story.tell({ type: 'host.recovered' })
    for (let index = 0; index < 8; index += 1) story.tell({ type: 'call.claimed', callId: `a${index}` })
    expect(story.running).toEqual([])
    expect(story.wakesInMs).toBe(before.wakesInMs)
    story.pass(before.wakesInMs as number)
    expect(story.running).toEqual(['a0'])
  })

  it('goes at once when an operator releases the waits', () => {
    const story = crowd()
    for (let index = 0; index < 8; index += 1)
      story.refuse(`a${index}`, refusalOf('overloaded', { retryAfterMs: 60_000 }))
    story.tell({ type: 'wait.released' })
    expect(story.running).toHaveLength(8)
  })
})

describe('a flood of ingestion against an engine that sheds it', () => {
  /** The engine takes no ingestion for 60 s, then two calls in three; interactive always. Workers would ask every 50 ms. */
  const flood = () => {
    const story = new Story({ ...pool, capacity: 8 })
    const random = seededRandom(5)
    const tickMs = 50
    const workers = 4
    let attempts = 0
    let hits = 0
    let done = 0
    let interactivePaced = 0
    const windows: number[] = []
    for (let index = 0; index < workers; index += 1) story.auxiliary(`w${index}`, { principal: `w${index}` })
    for (let tick = 0; tick < 6_000; tick += 1) {
      attempts += workers
      for (const id of story.running) {
        const call = id.startsWith('w')
        const sheds = call && (tick < 1_200 || random() < 1 / 3)
        if (call) hits += 1
        if (sheds) {
          const before = story.context.pacing.background_ingestion?.refusals ?? 0
          story.refuse(id)
          const pace = story.context.pacing.background_ingestion as Pace
          if (pace.refusals > before && tick < 1_200) windows.push(pace.pausedUntilMs - story.at)
          continue
        }
        story.settle(id)
        if (!call) continue
        done += 1
        story.auxiliary(`w${tick}-${id}`, { principal: id })
      }
      if (tick % 10 === 0 && !story.primary(`i${tick}`).join().includes('admit')) interactivePaced += 1
      story.pass(tickMs)
    }
    return { attempts, hits, done, interactivePaced, windows }
  }
  const { attempts, hits, done, interactivePaced, windows } = flood()

  it('hits the engine less than a third as often as it would', () => {
    expect(hits).toBeLessThan(attempts / 3)
  })

  it('has windows that grow', () => {
    expect(windows.length).toBeGreaterThan(5)
    const growing = windows.slice(0, 7)
    expect(growing).toEqual([...growing].sort((one, other) => one - other))
  })

  it('never paces interactive', () => {
    expect(interactivePaced).toBe(0)
  })

  it('makes progress once the engine takes it again', () => {
    expect(done).toBeGreaterThan(20)
  })
})
