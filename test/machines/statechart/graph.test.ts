/**
 * Paths through the whole statechart: a new state, transition or guard without a path fails here, by name.
 */
import { beforeAll, describe, expect, it } from 'vitest'
import { createMachine } from 'xstate'
import { scopeChart } from '../../../machines/index.ts'
import { nothingCovered, type StateDefinition, uncovered, type World, walk } from './graph-walk.ts'

const primary = { id: 'p', lane: 'primary', priorityClass: 'interactive' } as const
const second = { ...primary, id: 'q', priorityClass: 'orchestration' } as const

const worlds: ReadonlyArray<readonly [string, World]> = [
  [
    'a primary beside two residences, under settle',
    {
      policy: { capacity: 2, reserve: 0, patienceMs: 10_000, maxDeferralMs: 8_000, lingerMs: 1_000 },
      calls: [primary, { id: 'a' }, { id: 'b', principal: 'b' }],
      refusals: true,
    },
  ],
  [
    'two primaries and one place, under cancel',
    {
      policy: { capacity: 1, inFlight: 'cancel', maxDeferralMs: 30_000 },
      calls: [primary, second, { id: 'a' }],
    },
  ],
  [
    'two primaries that are not waited for once accepted, under tolerate',
    {
      policy: { capacity: 2, inFlight: 'tolerate', hold: 'untilAccepted', lingerMs: 0 },
      calls: [primary, second, { id: 'a' }],
    },
  ],
  ['a turn that holds the gate', { policy: { capacity: 1 }, calls: [primary, { id: 'a' }], turns: true }],
]

describe('paths through the statechart', () => {
  const covered = nothingCovered()

  beforeAll(() => {
    for (const [, world] of worlds) walk(world, covered)
  })

  it('cover every state, every transition and both outcomes of every guard', () => {
    console.info(`${covered.paths} paths, the longest of ${covered.longest} steps`)
    expect(uncovered(scopeChart.root, covered)).toEqual([])
  })

  it('end where XState\u2019s own interpreter ends, at every moment', () => {
    expect([...covered.disagreements]).toEqual([])
  })

  it('name what they do not cover when the statechart grows', () => {
    const { idle } = scopeChart.config.states as Record<string, object>
    const grown = createMachine({
      ...scopeChart.config,
      states: {
        ...scopeChart.config.states,
        idle: {
          ...idle,
          always: [
            { guard: 'primaryWanted', target: 'paused' },
            { guard: 'isSunday', target: 'paused' },
          ],
        },
        paused: {},
      },
    } as never)
    expect(uncovered(grown.root as unknown as StateDefinition, covered)).toEqual([
      'scope.paused',
      'scope.idle, always 2: isSunday',
      'isSunday: true',
      'isSunday: false',
    ])
  })

  it('ask every guard that the machine implements', () => {
    const asked = new Set([...covered.outcomes].map((outcome) => outcome.split(':', 1)[0]))
    expect(Object.keys(scopeChart.implementations.guards).filter((name) => !asked.has(name))).toEqual([])
  })
})
