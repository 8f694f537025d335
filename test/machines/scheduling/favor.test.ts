/** Run to completion: of equal calls, those of turns that have begun go first, and who is never harmed by it. */
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import {
  type Call,
  type Policy,
  type PolicyInput,
  parsePolicy,
  worstCaseWaitMs,
} from '../../../machines/index.ts'
import { runs } from '../../properties/runs.ts'
import { Story } from '../story.ts'

const plain: PolicyInput = {
  capacity: 1,
  reserve: 0,
  inFlight: 'tolerate',
  hold: 'whileWaiting',
  drainIntervalMs: 0,
  lingerMs: 0,
  maxRankDeferralMs: null,
}

/** Primaries of equal rank: `a1` is the call 1 of principal a; `a1:x` is of turn x. */
const come = (story: Story, names: ReadonlyArray<string>, over: Partial<Call> = {}): void => {
  for (const name of names) {
    const [id, turnId = null] = name.split(':') as [string, string | undefined]
    story.primary(id, { turnId, principal: id.charAt(0), priorityClass: 'orchestration', ...over })
  }
}

/** Ends what runs, one by one, until nothing does; answers the ids in the order in which they went. */
const order = (story: Story): ReadonlyArray<string> => {
  const went: string[] = []
  for (let id = story.running[0]; id !== undefined; id = story.running[0]) {
    went.push(id)
    story.settle(id)
  }
  return went
}

describe('of primaries of one rank', () => {
  it.each<[string, Policy['favor'], string[], string[]]>([
    [
      'one of a begun turn passes its own principal',
      'begunInPrincipal',
      ['a1:x', 'a2', 'a3:x'],
      ['a3', 'a2'],
    ],
    [
      'its principal seats its calls anew, and another keeps its seat',
      'begunInPrincipal',
      ['a1:x', 'a2', 'b1', 'a3:x'],
      ['a3', 'b1', 'a2'],
    ],
    [
      'those that were passed stay in their own order',
      'begunInPrincipal',
      ['a1:x', 'a2', 'a3', 'b1', 'a4:x', 'a5:x'],
      ['a4', 'a5', 'b1', 'a2', 'a3'],
    ],
    ['none passes another principal', 'begunInPrincipal', ['a1:x', 'b1', 'a2:x'], ['b1', 'a2']],
    ['one passes all others where that is wanted', 'begun', ['a1:x', 'b1', 'b2', 'a2:x'], ['a2', 'b1', 'b2']],
    ['begun turns go by arrival', 'begun', ['a1:x', 'b1', 'a2:x', 'a3:x'], ['a2', 'a3', 'b1']],
    [
      'siblings that came before the turn began are of it',
      'begun',
      ['a0', 'a1:x', 'b1', 'a2:x'],
      ['a1', 'a2', 'b1'],
    ],
    ['by arrival none passes', 'arrival', ['a1:x', 'a2', 'a3:x'], ['a2', 'a3']],
  ])('%s', (_, favor, names, expected) => {
    const story = new Story({ ...plain, favor })
    come(story, names)
    expect(order(story).slice(1)).toEqual(expected)
  })

  it('the default is inside one principal, and a better rank goes first whatever has begun', () => {
    const story = new Story(plain)
    expect(story.context.policy.favor).toBe('begunInPrincipal')
    come(story, ['a1:x', 'a2:y', 'a3:x'])
    come(story, ['a4'], { priorityClass: 'interactive' })
    expect(order(story)).toEqual(['a1', 'a4', 'a3', 'a2'])
  })

  it('a turn that was ended is not favored when its name is used again', () => {
    const story = new Story({ ...plain, favor: 'begun' })
    story.tell({ type: 'turn.began', turnId: 'x', betweenRounds: 'yield' })
    come(story, ['a1:x'])
    story.tell({ type: 'turn.ended', turnId: 'x' })
    come(story, ['b1', 'a2:x'])
    expect(order(story)).toEqual(['a1', 'b1', 'a2'])
  })

  it('a call that was refused has the seat that it took, and the one that gave it away waits behind', () => {
    const story = new Story(plain)
    come(story, ['a1:x', 'a2', 'b1', 'a3:x'])
    story.settle('a1')
    expect(story.running).toEqual(['a3'])
    story.refuse('a3')
    story.pass(60_000)
    expect(order(story)).toEqual(['b1', 'a3', 'a2'])
  })

  it.each<Policy['favor']>(['begun', 'begunInPrincipal'])(
    'no call is passed any more once it has waited for half its pending timeout: %s',
    (favor) => {
      const story = new Story({ ...plain, favor, primaryPendingTimeoutMs: 60_000 })
      come(story, ['a1:x', 'a2'])
      let round = 3
      for (; story.running[0] !== 'a2'; round += 1) {
        come(story, [`a${round}:x`])
        story.pass(1_000)
        story.settle(story.running[0]!)
        expect(round).toBeLessThan(100)
      }
      const bound = worstCaseWaitMs(story.context.policy, {
        lane: 'primary',
        priorityClass: 'interactive',
        turns: true,
        placeEveryMs: 1_000,
      })
      const waitedMs = story.at - 1_000_000
      expect(waitedMs).toBeGreaterThanOrEqual(30_000)
      expect(waitedMs).toBeLessThanOrEqual(bound)
    },
  )
})

describe('of auxiliaries', () => {
  const backlog = (names: ReadonlyArray<string>, policy: PolicyInput = {}): Story => {
    const story = new Story({ ...plain, ...policy })
    for (const name of names) {
      const [id, turnId = null] = name.split(':') as [string, string | undefined]
      story.auxiliary(id, { turnId, principal: id.charAt(0) })
    }
    return story
  }

  it.each<[string, Policy['favor'], string[], string[]]>([
    [
      'one of a begun turn passes its own principal',
      'begunInPrincipal',
      ['a1:x', 'a2', 'a3:x'],
      ['a3', 'a2'],
    ],
    [
      'and takes no more turns than before',
      'begunInPrincipal',
      ['a1:x', 'a2', 'b1', 'a3:x'],
      ['b1', 'a3', 'a2'],
    ],
    [
      'turns of principals stay fair where primaries are favored between them',
      'begun',
      ['a1:x', 'b1', 'a2:x'],
      ['b1', 'a2'],
    ],
    ['by arrival none passes', 'arrival', ['a1:x', 'a2', 'a3:x'], ['a2', 'a3']],
  ])('%s', (_, favor, names, expected) => {
    expect(order(backlog(names, { favor })).slice(1)).toEqual(expected)
  })

  it('what primaries have held longest goes in a quantum, whatever turn has begun since', () => {
    const story = backlog(['a1:x', 'a2', 'a3:x'], {
      maxDeferralMs: 10_000,
      hold: 'untilSettled',
      capacity: 2,
    })
    // The first two run; now primaries come without end.
    story.settle('a3')
    const waits = new Story({
      ...plain,
      capacity: 2,
      reserve: 1,
      hold: 'untilSettled',
      maxDeferralMs: 10_000,
    })
    waits.auxiliary('a1', { turnId: 'x' })
    waits.auxiliary('a2')
    waits.auxiliary('a3', { turnId: 'x' })
    waits.primary('p')
    waits.settle('a1')
    expect(waits.pass(10_000)).toEqual(['release a2: fairness'])
  })
})

/** Agents of several rounds each, a second a call, four at a time; answers how many are done after `seconds`. */
const done = (
  favor: Policy['favor'],
  lane: Call['lane'],
  principals: 'one' | 'each its own',
  seconds: number,
): number => {
  const [agents, rounds] = [64, 6]
  const story = new Story({ ...plain, capacity: 4, favor })
  const next = (agent: string, round: number) =>
    story.submit({
      id: `${agent}/${round}`,
      turnId: agent,
      lane,
      priorityClass: lane === 'primary' ? 'orchestration' : 'background_ingestion',
      principal: principals === 'one' ? 'one' : agent,
    })
  for (let agent = 0; agent < agents; agent += 1) next(`g${agent}`, 1)
  let ended = 0
  for (let second = 0; second < seconds; second += 1) {
    story.pass(1_000)
    for (const id of story.running) {
      const [agent, round] = id.split('/') as [string, string]
      story.settle(id)
      if (Number(round) === rounds) ended += 1
      else next(agent, Number(round) + 1)
    }
  }
  return ended
}

describe('64 agents of six rounds each, after half the time that all of them take', () => {
  it.each<[Policy['favor'], Call['lane'], 'one' | 'each its own', number, number]>([
    ['begun', 'primary', 'each its own', 26, 32],
    ['begun', 'primary', 'one', 26, 32],
    ['begunInPrincipal', 'primary', 'one', 26, 32],
    ['begunInPrincipal', 'auxiliary', 'one', 26, 32],
    ['begunInPrincipal', 'primary', 'each its own', 0, 1],
    ['arrival', 'primary', 'one', 0, 1],
    ['arrival', 'auxiliary', 'one', 0, 1],
  ])('favor %s, %s, principals: %s: from %i to %i are done', (favor, lane, principals, least, most) => {
    const ended = done(favor, lane, principals, 48)
    expect(ended).toBeGreaterThanOrEqual(least)
    expect(ended).toBeLessThanOrEqual(most)
  })
})

const step = fc.oneof(
  {
    weight: 3,
    arbitrary: fc.record({
      do: fc.constant('come' as const),
      principal: fc.constantFrom('a', 'b', 'c'),
      turn: fc.option(fc.nat({ max: 2 })),
      interactive: fc.boolean(),
    }),
  },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('end' as const), which: fc.nat({ max: 3 }) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constantFrom('pass' as const, 'restart' as const) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('withdraw' as const), which: fc.nat({ max: 9 }) }) },
)

interface Gone {
  readonly id: string
  readonly principal: string
}

/** Plays a script whose calls come at the same times whatever goes first; answers the calls in the order of their permits. */
const play = (
  favor: Policy['favor'],
  steps: ReadonlyArray<typeof step extends fc.Arbitrary<infer A> ? A : never>,
  { withdraws, ranks }: { readonly withdraws: boolean; readonly ranks: boolean },
  look: (story: Story, went: Gone, before: Story['context']) => void = () => {},
): ReadonlyArray<Gone> => {
  let story = new Story({ ...plain, capacity: 2, favor })
  const running: string[] = []
  const gone: Gone[] = []
  const seen = (act: () => void): void => {
    const before = story.context
    act()
    if (story.context === before) return
    for (const { callId, verdict } of story.context.decisions) {
      if (verdict !== 'admit' && verdict !== 'release') continue
      const went = { id: callId, principal: callId.charAt(0) }
      running.push(callId)
      gone.push(went)
      look(story, went, before)
    }
  }
  for (const [index, one] of steps.entries()) {
    if (one.do === 'come') {
      const { principal, turn, interactive } = one
      const priorityClass = ranks && interactive ? 'interactive' : 'orchestration'
      const turnId = turn === null ? null : `${principal}-t${turn}`
      seen(() => story.primary(`${principal}${index}`, { principal, turnId, priorityClass }))
    } else if (one.do === 'end') {
      const [id] = running.splice(one.which % Math.max(1, running.length), 1)
      if (id !== undefined) seen(() => story.settle(id))
    } else if (one.do === 'withdraw') {
      const id = withdraws ? story.waiting[one.which] : undefined
      if (id !== undefined) seen(() => story.withdraw(id))
    } else if (one.do === 'restart') story = story.restarted()
    else seen(() => story.pass(1_000))
  }
  while (running.length > 0) seen(() => story.settle(running.shift()!))
  expect(story.waiting).toEqual([])
  return gone
}

const script = fc.array(step, { maxLength: 60, size: 'max' })

describe('whatever comes', () => {
  it('other principals go exactly when they would by arrival', () => {
    fc.assert(
      fc.property(script, (steps) => {
        const how = { withdraws: false, ranks: false }
        const by = (favor: Policy['favor']) => play(favor, steps, how).map(({ principal }) => principal)
        expect(by('begunInPrincipal')).toEqual(by('arrival'))
      }),
      { numRuns: runs(150) },
    )
  })

  it.each<Policy['favor']>(['begunInPrincipal', 'begun', 'arrival'])(
    'no call goes before one of better rank, nor a fresh one before one of a begun turn that is its equal: %s',
    (favor) => {
      fc.assert(
        fc.property(script, (steps) => {
          const begun = new Set<string>()
          play(favor, steps, { withdraws: true, ranks: true }, (story, { id }, before) => {
            const calls = new Map(
              [...before.waiting, ...story.context.inFlight].map(([name, { call }]) => [name, call]),
            )
            const went = calls.get(id)!
            for (const [name, { call }] of before.waiting) {
              // It went with the same event.
              if (name === id || story.context.inFlight.toString().includes(`"${name}"`)) continue
              if (went.priorityClass !== 'interactive') expect(call.priorityClass).not.toBe('interactive')
              const isEqual =
                call.priorityClass === went.priorityClass &&
                (favor === 'begun' || (favor === 'begunInPrincipal' && call.principal === went.principal))
              const isFresh = went.turnId === null || !begun.has(went.turnId)
              const waits = story.waiting.includes(name)
              if (isEqual && isFresh && waits)
                expect(call.turnId === null || !begun.has(call.turnId)).toBe(true)
            }
            if (went.turnId !== null) begun.add(went.turnId)
          })
        }),
        { numRuns: runs(80) },
      )
    },
  )

  it('calls that are equal and fresh go by arrival, and all of them go', () => {
    fc.assert(
      fc.property(script, (steps) => {
        const gone = play('begunInPrincipal', steps, { withdraws: true, ranks: false })
        expect(new Set(gone.map(({ id }) => id)).size).toBe(gone.length)
        const turnOf = (id: string): number | null => {
          const one = steps[Number(id.slice(1))]!
          return one.do === 'come' ? one.turn : null
        }
        for (const principal of ['a', 'b', 'c']) {
          const fresh = gone.filter((one) => one.principal === principal && turnOf(one.id) === null)
          const numbers = fresh.map(({ id }) => Number(id.slice(1)))
          expect(numbers).toEqual([...numbers].sort((one, other) => one - other))
        }
      }),
      { numRuns: runs(150) },
    )
  })
})

it('of a policy that favors turns, the bound of a primary counts the time for which it may be passed', () => {
  const ask = { lane: 'primary', priorityClass: 'interactive', placeEveryMs: 1_000 } as const
  const bound = (policy: PolicyInput, turns: boolean) =>
    worstCaseWaitMs(parsePolicy(policy), { ...ask, turns })
  expect(bound({}, false)).toBe(4_000)
  expect(bound({}, true)).toBe(4_000 + 15 * 60_000)
  expect(bound({ favor: 'arrival' }, true)).toBe(4_000)
})

it('a primary that calls of a begun turn pass without end goes within the bound, and not much before', () => {
  fc.assert(
    fc.property(
      fc.constantFrom('begun' as const, 'begunInPrincipal' as const),
      fc.constantFrom(120_000, 300_000),
      fc.nat({ max: 3 }),
      fc.integer({ min: 500, max: 5_000 }),
      (favor, primaryPendingTimeoutMs, callsAhead, serviceMs) => {
        const policy = { ...plain, favor, primaryPendingTimeoutMs }
        const boundMs = worstCaseWaitMs(parsePolicy(policy), {
          ...{ lane: 'primary', priorityClass: 'interactive', callsAhead },
          ...{ turns: true, placeEveryMs: serviceMs },
        })
        const story = new Story(policy)
        const comes = (name: string) => come(story, [name], { priorityClass: 'interactive' })
        comes('t0:x')
        for (let ahead = 0; ahead < callsAhead; ahead += 1) comes(`tahead${ahead}`)
        comes('tlast')
        let waitedMs = 0
        for (let round = 1; story.running[0] !== 'tlast'; round += 1) {
          comes(`t${round}:x`)
          story.pass(serviceMs)
          waitedMs += serviceMs
          story.settle(story.running[0]!)
          expect(waitedMs).toBeLessThanOrEqual(boundMs + serviceMs)
        }
        expect(waitedMs).toBeGreaterThanOrEqual(primaryPendingTimeoutMs / 2)
      },
    ),
    { numRuns: runs(40) },
  )
})
