/** Places: those kept for primaries, those halved after a primary, and changes of their number. */
import { describe, expect, it } from 'vitest'
import { contractPolicy, type EvidenceKind, parsePolicy, poolPolicy } from '../../../machines/index.ts'
import { capacityOf, grown, type LearnedCapacity, shrunk } from '../../../machines/limits/capacity.ts'
import { Story } from '../story.ts'

const flood = (story: Story, count: number): number => {
  for (let index = 0; index < count; index += 1) story.auxiliary(`f${index}`)
  return story.running.filter((id) => id.startsWith('f')).length
}

describe('auxiliaries may fill', () => {
  it.each([
    ['capacity - reserve', { capacity: 8, reserve: 3 }, 5],
    ['all of a pool of one', { capacity: 1 }, 1],
    ['everything, where nothing is kept', { capacity: 4, reserve: 0 }, 4],
    ['one place, where all others are kept', { capacity: 4, reserve: 3 }, 1],
  ])('%s', (_, policy, places) => {
    expect(flood(new Story({ ...poolPolicy, ...policy }), 20)).toBe(places)
  })

  it('less, by every primary that runs', () => {
    const story = new Story({ ...poolPolicy, capacity: 6, reserve: 2 })
    for (const id of ['p', 'q']) story.primary(id)
    expect(flood(story, 20)).toBe(2)
  })
})

describe('the squeeze after a primary was admitted', () => {
  const squeezed = (policy = {}): Story => {
    const story = new Story({ ...poolPolicy, capacity: 8, reserve: 1, squeezeMs: 30_000, ...policy })
    story.primary('p')
    story.settle('p')
    return story
  }

  it.each([
    ['half of 7 places', {}, 3],
    ['half of 2', { capacity: 2, reserve: 0 }, 1],
    ['one, never none', { capacity: 2, reserve: 1 }, 1],
    ['all, when it is off', { squeezeMs: 0 }, 7],
  ])('leaves auxiliaries %s', (_, policy, places) => {
    expect(flood(squeezed(policy), 20)).toBe(places)
  })

  it('ends after squeezeMs, to the millisecond, and lets the waiting in by itself', () => {
    const story = squeezed()
    flood(story, 7)
    expect(story.reasonOf('f3')).toBe('reserve-kept')
    expect(story.pass(29_999)).toEqual([])
    expect(story.pass(1)).toHaveLength(4)
  })

  it('takes nothing from running calls', () => {
    const story = new Story({ ...poolPolicy, capacity: 8, reserve: 1, squeezeMs: 30_000 })
    flood(story, 7)
    story.primary('p')
    expect(story.running).toHaveLength(8)
    story.settle('p')
    story.settle('f0')
    expect(story.running).toHaveLength(6)
  })

  it('starts again with every primary', () => {
    const story = squeezed()
    story.pass(20_000)
    story.primary('q')
    story.settle('q')
    flood(story, 7)
    story.pass(29_999)
    expect(story.running).toHaveLength(3)
    story.pass(1)
    expect(story.running).toHaveLength(7)
  })

  it('survives a restart', () => {
    const story = squeezed().restarted()
    expect(flood(story, 20)).toBe(3)
  })
})

describe('a capacity that changes while calls run', () => {
  it('upwards admits at once, in the same event', () => {
    const story = new Story({ ...poolPolicy, capacity: 2, reserve: 0 })
    flood(story, 5)
    expect(story.change({ capacity: 4 })).toEqual(['release f2: open', 'release f3: open'])
  })

  it('downwards takes nobody back, and admits nobody until enough have left', () => {
    const story = new Story({ ...poolPolicy, capacity: 4, reserve: 0 })
    flood(story, 6)
    expect(story.change({ capacity: 2 })).toEqual([])
    expect(story.running).toHaveLength(4)
    for (const id of ['f0', 'f1']) expect(story.settle(id)).toEqual([])
    expect(story.settle('f2')).toEqual(['release f4: open'])
  })

  it('there and back is as it was: there is one gate, not two', () => {
    const story = new Story({ ...poolPolicy, capacity: 3, reserve: 0 })
    flood(story, 9)
    for (const capacity of [1, 3, 2, 3]) story.change({ capacity })
    expect(story.running).toHaveLength(3)
    expect(story.context.counts.places).toBe(3)
  })

  it('keeps turns, budgets and waits: only what the policy says is new', () => {
    const story = new Story({ capacity: 4, reserve: 0, limits: { requestsPerMinute: 10 } })
    flood(story, 4)
    story.tell({ type: 'turn.began', turnId: 't', betweenRounds: 'hold' })
    story.change({ capacity: 9 })
    expect(story.context.heldTurns).toBe(1)
    expect(story.context.budget.requestsPerMinute?.level).toBe(6)
  })
})

describe('a capacity that is learned', () => {
  const learning = (): Story => new Story({ ...poolPolicy, capacity: 10, capacityFloor: 2, reserve: 0 })
  const evidence = {
    kind: 'concurrency',
    scope: 'model',
    retryAfterMs: null,
    retryable: true,
    facts: {},
  } as const

  it('begins at the policy', () => {
    expect(flood(learning(), 20)).toBe(10)
  })

  it('falls to what the provider took, and pauses nobody', () => {
    const story = learning()
    flood(story, 20)
    story.pass(5)
    for (const id of ['f7', 'f8', 'f9']) story.refuse(id, evidence)
    expect(story.running).toHaveLength(7)
    expect(story.settle('f0')).toHaveLength(1)
  })

  it('never falls below its floor', () => {
    const story = learning()
    flood(story, 20)
    story.pass(5)
    for (let index = 9; index >= 0; index -= 1) story.refuse(`f${index}`, evidence)
    expect(story.context.learned.places).toBe(2)
    story.pass(10_000)
    expect(story.running).not.toEqual([])
  })

  it('rises by one for every full round of answers while all places are used', () => {
    const story = learning()
    flood(story, 60)
    story.pass(5)
    for (const id of ['f5', 'f6', 'f7', 'f8', 'f9']) story.refuse(id, evidence)
    expect(story.running).toHaveLength(5)
    for (let answer = 0; answer < 6; answer += 1) story.settle(story.running[0] as string)
    expect(story.running).toHaveLength(6)
  })
})

describe('what is learned of the capacity', () => {
  const policy = parsePolicy({ capacity: 10, capacityFloor: 3, reserve: 0 }, contractPolicy)
  const fixed = parsePolicy({ capacity: 10, capacityFloor: null, reserve: 0 }, contractPolicy)
  const five: LearnedCapacity = { places: 5, credit: 0, epochMs: 100 }

  it.each([
    ['what was learned', policy, 5, 5],
    ['at most what the policy says', policy, 12, 10],
    ['at least the floor', policy, 1, 3],
    ['what the policy says, where nothing is to be learned', fixed, 5, 10],
  ])('is %s', (_, of, places, capacity) => {
    expect(capacityOf({ policy: of, learned: { ...five, places } })).toBe(capacity)
  })

  it.each([
    ['of a full house counts as its share of a round', policy, five, 5, { ...five, credit: 0.2 }],
    [
      'that completes a round adds a place',
      policy,
      { ...five, credit: 0.8 },
      5,
      { ...five, places: 6, credit: 0 },
    ],
    ['while a place was free teaches nothing', policy, five, 4, five],
    ['at the capacity of the policy teaches nothing', policy, { ...five, places: 10 }, 10, { places: 10 }],
    ['above it, which was lowered, teaches nothing', policy, { ...five, places: 12 }, 12, { places: 12 }],
    ['teaches nothing where nothing is to be learned', fixed, five, 5, five],
  ] as const)('an answer %s', (_, of, learned, inUse, expected) => {
    expect(grown({ policy: of, learned }, inUse)).toEqual({ ...learned, ...expected })
  })

  const refused = (over: {
    of?: typeof policy
    learned?: LearnedCapacity
    kind: EvidenceKind
    stillInUse?: number
    grantedAt?: number
  }): LearnedCapacity =>
    shrunk(
      { policy: over.of ?? policy, learned: over.learned ?? five },
      { kind: over.kind, stillInUse: over.stillInUse ?? 4, grantedAt: over.grantedAt ?? 100, at: 200 },
    )

  it.each<[string, Parameters<typeof refused>[0], number]>([
    ['for concurrency leaves what still runs', { kind: 'concurrency' }, 4],
    ['for concurrency never adds', { kind: 'concurrency', stillInUse: 7 }, 5],
    [
      'for concurrency says more exactly how many, late in a burst',
      { kind: 'concurrency', grantedAt: 99 },
      4,
    ],
    ['for concurrency leaves the floor', { kind: 'concurrency', stillInUse: 1 }, 3],
    ['for overload takes a fifth', { kind: 'overloaded' }, 4],
    ['for overload leaves the floor', { kind: 'overloaded', learned: { ...five, places: 3 } }, 3],
  ])('a refusal %s', (_, over, places) => {
    expect(refused({ ...over, learned: { ...(over.learned ?? five), credit: 0.5 } })).toEqual({
      places,
      credit: 0,
      epochMs: 200,
    })
  })

  it.each<[string, Parameters<typeof refused>[0]]>([
    ['for overload of a call from before the last one', { kind: 'overloaded', grantedAt: 99 }],
    ['for tokens', { kind: 'input-tokens-per-minute' }],
    ['where nothing is to be learned', { kind: 'concurrency', of: fixed }],
  ])('a refusal %s teaches nothing', (_, over) => {
    expect(refused(over)).toBe(five)
  })
})
