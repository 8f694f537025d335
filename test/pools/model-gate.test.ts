/** The Edict's gate over one model, as its own tests describe it, and what it gets wrong. */
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { type PriorityClass, priorityClasses, worstCaseWaitMs } from '../../machines/index.ts'
import { modelGatePolicy } from '../../src/config/pools.ts'
import { runs } from '../properties/runs.ts'
import { Gate } from './gate.ts'

const background = 'background_ingestion'

/** A gate without the squeeze, unless the story is about it. */
const gateOf = (capacity: number, reserve: number, squeezeMs = 0): Gate =>
  new Gate(modelGatePolicy({ capacity, reserve, squeezeMs }))

describe('the gate', () => {
  it.each([
    [{}, 32, 'auto'],
    [{ declared: 8 }, 8, 'auto'],
    [{ capacity: 4, declared: 8 }, 4, 'auto'],
    [{ capacity: 0 }, 1, 'auto'],
    [{ capacity: -7 }, 1, 'auto'],
    [{ capacity: 2.9 }, 2, 'auto'],
    [{ capacity: 4, reserve: 9 }, 4, 3],
    [{ capacity: 4, reserve: -1 }, 4, 0],
    [{ capacity: 1, reserve: 1 }, 1, 0],
  ] as const)('of %j has capacity %i and reserve %s', (options, capacity, reserve) => {
    expect(modelGatePolicy(options)).toMatchObject({ capacity, reserve })
  })

  it('of 4 with reserve 1 refuses background at 3, takes a high one, and refuses the next high one at 4', () => {
    const gate = gateOf(4, 1)
    expect(gate.flood(3)).toBe(3)
    gate.outlivesDeferrals()
    expect(gate.lands(background)).toBe(false)
    expect(gate.lastReason).toBe('reserve-kept')
    expect(gate.lands('interactive')).toBe(true)
    expect(gate.lands('interactive')).toBe(false)
    expect(gate.lastReason).toBe('capacity-full')
  })

  it('counts every class in flight against the places of background', () => {
    const gate = gateOf(4, 1)
    expect(gate.flood(2, 'orchestration')).toBe(2)
    expect(gate.flood(2)).toBe(1)
  })

  it('refuses background while a high one waits, even on an empty gate', () => {
    const gate = new Gate({
      ...modelGatePolicy({ capacity: 4, reserve: 1, squeezeMs: 0 }),
      limits: { ...modelGatePolicy().limits, inputTokensPerMinute: 1_000 },
    })
    gate.leaves(gate.ask('interactive', { inputTokens: 1_000 }))
    expect(gate.lands('interactive', { inputTokens: 500 })).toBe(false)
    expect(gate.inFlight).toEqual([])
    expect(gate.lands(background)).toBe(false)
    expect(gate.lastReason).toBe('primary-pending')
  })

  it.each(priorityClasses)('of a single permit serves %s', (priorityClass) => {
    const gate = gateOf(1, 0)
    const first = gate.ask(priorityClass)
    expect(gate.holds(first)).toBe(true)
    const second = gate.ask(priorityClass)
    expect(gate.waits(second)).toBe(true)
    gate.leaves(first)
    expect(gate.holds(second)).toBe(true)
  })

  it.each(['interactive', 'orchestration', 'hydration'] as const)(
    'under a saturating background, never above capacity - reserve, takes %s at once',
    (priorityClass) => {
      const gate = gateOf(8, 3)
      expect(gate.flood(100)).toBe(5)
      gate.outlivesDeferrals()
      expect(gate.inFlightOf('background_ingestion')).toBe(5)
      for (let round = 0; round < 20; round++) {
        const high = gate.ask(priorityClass)
        expect(gate.holds(high)).toBe(true)
        expect(gate.inFlightOf(background)).toBeLessThanOrEqual(5)
        gate.leaves(gate.inFlight.find((id) => id.startsWith(background))!)
        gate.leaves(high)
        expect(gate.inFlightOf(background)).toBeLessThanOrEqual(5)
      }
    },
  )

  it('lets background have exactly capacity - reserve when nothing higher contends', () => {
    const gate = gateOf(8, 3)
    gate.flood(100)
    let peak = 0
    for (let round = 0; round < 90; round++) {
      peak = Math.max(peak, gate.inFlight.length)
      gate.leaves(gate.inFlight[0]!)
      expect(gate.inFlight.length).toBeGreaterThanOrEqual(5)
    }
    expect(peak).toBe(5)
  })

  it('counts the untagged as orchestration: it never yields', () => {
    const gate = gateOf(2, 1)
    gate.flood(5)
    expect(gate.lands('orchestration')).toBe(true)
  })
})

describe('the squeeze after a high admission', () => {
  it('of 8 places with reserve 1 takes background at 2 and refuses it at 3', () => {
    const gate = gateOf(8, 1, 30_000)
    gate.leaves(gate.ask('interactive'))
    expect(gate.flood(2)).toBe(2)
    expect(gate.lands(background)).toBe(true)
    expect(gate.lands(background)).toBe(false)
    expect(gate.lastReason).toBe('reserve-kept')
  })

  it.each([
    [1, 0],
    [2, 1],
    [3, 2],
    [4, 3],
    [32, 31],
  ])('never reaches 0, at capacity %i and reserve %i', (capacity, reserve) => {
    const gate = gateOf(capacity, reserve, 30_000)
    gate.leaves(gate.ask('interactive'))
    expect(gate.lands(background)).toBe(true)
  })

  it('expires, and wakes who waits when it does', () => {
    const gate = gateOf(8, 1, 30_000)
    gate.leaves(gate.ask('interactive'))
    expect(gate.flood(7)).toBe(3)
    expect(gate.wakesInMs).toBe(30_000)
    gate.passes(29_999)
    expect(gate.inFlightOf(background)).toBe(3)
    gate.passes(1)
    expect(gate.inFlightOf(background)).toBe(7)
  })

  it('begins again with every high admission', () => {
    const gate = gateOf(8, 1, 30_000)
    gate.leaves(gate.ask('interactive'))
    gate.passes(29_000)
    gate.leaves(gate.ask('hydration'))
    expect(gate.flood(7)).toBe(3)
    gate.passes(29_999)
    expect(gate.inFlightOf(background)).toBe(3)
    gate.passes(1)
    expect(gate.inFlightOf(background)).toBe(7)
  })
})

describe('where the gate does better', () => {
  it('a settlement lets the next one in within the same event, whoever waits and however', () => {
    const gate = gateOf(2, 1)
    const held = gate.ask(background)
    const waiting = gate.ask(background)
    gate.leaves(held)
    expect(gate.holds(waiting)).toBe(true)
  })

  it('a high waiter that is cancelled strands no background', () => {
    const gate = gateOf(2, 1)
    const held = [gate.ask('interactive'), gate.ask('interactive')]
    const high = gate.ask('interactive')
    const low = gate.ask(background)
    for (const id of held) gate.leaves(id)
    expect(gate.holds(high)).toBe(true)
    const last = gate.ask('interactive')
    const cancelled = gate.ask('interactive')
    expect(gate.waits(cancelled)).toBe(true)
    gate.withdraws(cancelled)
    gate.leaves(high)
    gate.leaves(last)
    expect(gate.holds(low)).toBe(true)
  })

  it('a high one lands in the place kept for it although background waits, and background stays out of it', () => {
    const gate = gateOf(4, 2)
    gate.flood(2, 'interactive')
    const low = gate.ask(background)
    expect(gate.flood(2, 'interactive')).toBe(2)
    expect(gate.waits(low)).toBe(true)
  })

  it('a cancelled high waiter lets background in at once when it was all that stood in the way', () => {
    const gate = new Gate({
      ...modelGatePolicy({ capacity: 4, reserve: 1, squeezeMs: 0 }),
      limits: { ...modelGatePolicy().limits, inputTokensPerMinute: 1_000 },
    })
    gate.leaves(gate.ask('interactive', { inputTokens: 1_000 }))
    const high = gate.ask('interactive', { inputTokens: 500 })
    const low = gate.ask(background)
    expect(gate.waits(low)).toBe(true)
    gate.withdraws(high)
    expect(gate.holds(low)).toBe(true)
  })

  it('who releases does not get in again ahead of who waits', () => {
    const gate = gateOf(1, 0)
    const first = gate.ask('orchestration')
    const waiting = gate.ask('orchestration')
    gate.leaves(first)
    const again = gate.ask('orchestration')
    expect(gate.holds(waiting)).toBe(true)
    expect(gate.waits(again)).toBe(true)
  })

  it('among high waiters the rank decides, and within a rank who came first', () => {
    const gate = gateOf(1, 0)
    let held = gate.ask('interactive')
    const asked = (
      ['orchestration', 'hydration', 'interactive', 'orchestration', 'interactive'] as const
    ).map((priorityClass) => gate.ask(priorityClass))
    const served = asked.map(() => {
      gate.leaves(held)
      held = gate.inFlight[0]!
      return held
    })
    expect(served).toEqual([asked[2], asked[4], asked[0], asked[1], asked[3]])
  })

  it('background waits no longer than worstCaseWaitMs under high load that never ends', () => {
    const policy = modelGatePolicy({ capacity: 4, reserve: 1 })
    const gate = new Gate(policy)
    for (let high = 0; high < 8; high++) gate.ask('interactive')
    const low = gate.ask(background)
    const bound = worstCaseWaitMs(policy)
    let waitedMs = 0
    while (!gate.holds(low) && waitedMs <= 2 * bound) {
      gate.passes(1_000)
      waitedMs += 1_000
      gate.leaves(gate.inFlight[0]!)
      gate.ask('interactive')
    }
    expect(waitedMs).toBeLessThanOrEqual(bound + 1_000)
    expect(waitedMs).toBeGreaterThanOrEqual(bound)
  })

  it('a capacity that shrinks admits nobody until enough have left, and one that grows admits at once', () => {
    const gate = gateOf(4, 1)
    gate.flood(4, 'orchestration')
    const waiting = gate.ask('orchestration')
    gate.tell({ type: 'policy.changed', policy: modelGatePolicy({ capacity: 2, reserve: 1, squeezeMs: 0 }) })
    gate.leaves(gate.inFlight[0]!)
    gate.leaves(gate.inFlight[0]!)
    expect(gate.waits(waiting)).toBe(true)
    gate.leaves(gate.inFlight[0]!)
    expect(gate.holds(waiting)).toBe(true)
    const more = [gate.ask('orchestration'), gate.ask('orchestration')]
    gate.tell({ type: 'policy.changed', policy: modelGatePolicy({ capacity: 4, reserve: 1, squeezeMs: 0 }) })
    expect(more.map((id) => gate.holds(id))).toEqual([true, true])
  })

  it('a second release of the same permit lets nobody in, and is counted', () => {
    const gate = gateOf(2, 0)
    const [one] = [gate.ask('orchestration'), gate.ask('orchestration')]
    const waiting = [gate.ask('orchestration'), gate.ask('orchestration')]
    gate.leaves(one!)
    gate.leaves(one!)
    expect(waiting.map((id) => gate.holds(id))).toEqual([true, false])
    expect(gate.inFlight).toHaveLength(2)
    expect(gate.context.counters.lateSettlements).toBe(1)
  })
})

type Move =
  | { readonly kind: 'ask'; readonly priorityClass: PriorityClass }
  | { readonly kind: 'leave' | 'withdraw'; readonly which: number }

const anyMove: fc.Arbitrary<Move> = fc.oneof(
  fc.record({ kind: fc.constant('ask' as const), priorityClass: fc.constantFrom(...priorityClasses) }),
  fc.record({ kind: fc.constantFrom('leave' as const, 'withdraw' as const), which: fc.nat() }),
)

describe('the gate, whatever comes', () => {
  it("admits exactly when the Edict's predicate says so, as long as nobody's wait is overdue", () => {
    const story = fc.record({
      capacity: fc.integer({ min: 1, max: 9 }),
      reserve: fc.nat({ max: 9 }),
      moves: fc.array(anyMove, { maxLength: 60 }),
    })
    fc.assert(
      fc.property(story, ({ capacity, reserve, moves }) => {
        const policy = modelGatePolicy({ capacity, reserve, squeezeMs: 0 })
        const gate = new Gate(policy)
        const kept = policy.reserve as number
        const waiting: Array<string> = []
        for (const move of moves) {
          gate.at += 1
          if (move.kind === 'ask') {
            const { places, primaryWaiting } = gate.context.counts
            const isHigh = move.priorityClass !== background
            const admits = places < capacity && (isHigh || (primaryWaiting === 0 && places < capacity - kept))
            const id = gate.ask(move.priorityClass)
            expect(gate.holds(id)).toBe(admits)
            if (!admits) waiting.push(id)
          } else if (move.kind === 'leave' && gate.inFlight.length > 0) {
            gate.leaves(gate.inFlight[move.which % gate.inFlight.length]!)
          } else if (move.kind === 'withdraw' && waiting.length > 0) {
            gate.withdraws(waiting.splice(move.which % waiting.length, 1)[0]!)
          }
          const { counts } = gate.context
          expect(counts.places).toBeLessThanOrEqual(capacity)
          expect(counts.auxiliaryInFlight).toBeLessThanOrEqual(capacity - kept)
          // Nobody waits for a place that is free for it.
          if (counts.primaryWaiting > 0) expect(counts.places).toBe(capacity)
          else if (counts.auxiliaryWaiting > 0) expect(counts.places).toBeGreaterThanOrEqual(capacity - kept)
        }
      }),
      { numRuns: runs(500) },
    )
  })
})
