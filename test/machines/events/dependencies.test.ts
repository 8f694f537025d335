/**
 * A call that a primary waits for inherits its right of way; calls made inside calls borrow their places. No
 * cycle of waiting calls.
 */

import { HashMap } from 'effect'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { toArray } from '../../../machines/collections/queue.ts'
import { encodeScope } from '../../../machines/snapshot/codec.ts'
import { lookup } from '../../../machines/state/context.ts'
import { runs } from '../../properties/runs.ts'
import { Story } from '../story.ts'

const story = (policy = {}): Story => new Story({ capacity: 1, maxDeferralMs: 600_000, ...policy })

describe('a primary that depends on an auxiliary', () => {
  it('that waits lets it through a closed gate, and goes once it has ended', () => {
    const lanes = story()
    lanes.primary('running')
    lanes.auxiliary('summary')
    expect(lanes.primary('p', { dependsOn: ['summary'] })).toEqual(['defer p: dependencies'])
    expect(lanes.settle('running')).toEqual(['release summary: dependency'])
    expect(lanes.settle('summary')).toEqual(['release p: primary'])
  })

  it('that runs waits for it', () => {
    const lanes = story({ capacity: 2, reserve: 0 })
    lanes.auxiliary('summary')
    expect(lanes.primary('p', { dependsOn: ['summary'] })).toEqual(['defer p: dependencies'])
    expect(lanes.settle('summary')).toEqual(['release p: primary'])
  })

  it('that runs does not have it cancelled, as it has the others', () => {
    const lanes = story({ capacity: 2, reserve: 0, inFlight: 'cancel' })
    lanes.auxiliary('other')
    lanes.auxiliary('summary')
    const decided = lanes.primary('p', { dependsOn: ['summary'] })
    expect(decided).toEqual(['cancel other: preempted', 'defer p: dependencies'])
    lanes.settle('other', 'cancelled')
    lanes.settle('summary')
    expect(lanes.running).toContain('p')
  })

  it('that runs and is refused by the provider goes again through the closed gate', () => {
    const lanes = story({ capacity: 2, reserve: 0, pacingBaseMs: 100, pacingMaxMs: 100 })
    lanes.auxiliary('summary')
    lanes.primary('p', { dependsOn: ['summary'] })
    lanes.pass(5)
    lanes.refuse('summary')
    lanes.pass(1_000)
    expect(lanes.running).toEqual(['summary'])
  })

  it.each([
    ['is withdrawn', (lanes: Story) => lanes.withdraw('p')],
    ['expires', (lanes: Story) => lanes.pass(10_000)],
  ])('and %s lets it through no more, before a restart as after it', (_, leave) => {
    const policy = {
      capacity: 3,
      reserve: 0,
      primaryPendingTimeoutMs: 10_000,
      pacingMaxMs: 60_000,
      pacingBaseMs: 60_000,
    }
    const begun = story(policy)
    begun.auxiliary('summary')
    begun.primary('p', { dependsOn: ['summary'] })
    leave(begun)
    const restarted = begun.restarted()
    for (const lanes of [begun, restarted]) {
      lanes.primary('another')
      expect(lanes.refuse('summary')).toContain('defer summary: refused-by-provider')
      expect(HashMap.getUnsafe(lanes.context.waiting, 'summary').urgent).toBe(false)
    }
    expect(JSON.stringify(encodeScope(restarted.context))).toBe(JSON.stringify(encodeScope(begun.context)))
  })

  it('that comes later lets that one through when it comes, and does not wait for it', () => {
    const lanes = story({ capacity: 2, reserve: 0 })
    expect(lanes.primary('p', { dependsOn: ['summary'] })).toEqual(['admit p: primary'])
    expect(lanes.auxiliary('other')).toEqual(['defer other: primary-active'])
    expect(lanes.auxiliary('summary')).toEqual(['admit summary: dependency'])
  })

  it('that has ended goes at once', () => {
    const lanes = story()
    lanes.auxiliary('summary')
    lanes.settle('summary')
    expect(lanes.primary('p', { dependsOn: ['summary'] })).toEqual(['admit p: primary'])
  })

  it.each([
    ['completed', (lanes: Story) => lanes.settle('summary')],
    ['failed', (lanes: Story) => lanes.settle('summary', 'failed')],
    ['timed out', (lanes: Story) => lanes.settle('summary', 'timedOut')],
    ['was cancelled', (lanes: Story) => lanes.settle('summary', 'cancelled')],
  ])('goes when it %s', (_, end) => {
    const lanes = story()
    lanes.auxiliary('summary')
    lanes.primary('p', { dependsOn: ['summary'] })
    end(lanes)
    expect(lanes.running).toEqual(['p'])
  })

  it.each([
    ['withdrawn', (lanes: Story) => lanes.withdraw('summary')],
    ['expired', (lanes: Story) => lanes.pass(5_000)],
  ])('goes when it was %s while it waited', (_, end) => {
    const lanes = story({ auxiliaryPendingTimeoutMs: 5_000 })
    lanes.primary('running')
    lanes.auxiliary('summary')
    lanes.primary('p', { dependsOn: ['summary'] })
    end(lanes)
    expect(lanes.settle('running')).toEqual(['release p: primary'])
  })

  it('that was refused by the provider keeps its right of way while it waits again', () => {
    const lanes = story({ pacingBaseMs: 100, pacingMaxMs: 100, capacity: 2, reserve: 0 })
    lanes.primary('running')
    lanes.auxiliary('summary')
    lanes.primary('p', { dependsOn: ['summary'] })
    lanes.pass(10)
    lanes.refuse('summary')
    lanes.pass(1_000)
    expect(lanes.running).toContain('summary')
  })

  it('that is withdrawn takes the right of way of those that have not come with it', () => {
    const lanes = story({ capacity: 2, reserve: 0 })
    lanes.primary('running')
    lanes.primary('p', { dependsOn: ['later'] })
    lanes.settle('p')
    expect(lanes.auxiliary('later')).toEqual(['defer later: primary-active'])
  })

  it('waits for all of several', () => {
    const lanes = story({ capacity: 4, reserve: 0 })
    for (const id of ['a', 'b', 'c']) lanes.auxiliary(id)
    lanes.primary('p', { dependsOn: ['a', 'b', 'c'] })
    lanes.settle('b')
    lanes.settle('a')
    expect(lanes.reasonOf('p')).toBe('dependencies')
    expect(lanes.settle('c')).toEqual(['release p: primary'])
  })

  it.each([
    ['itself', ['p']],
    ['the same twice', ['a', 'a']],
    ['nobody', []],
    ['someone who never comes', ['ghost']],
  ])('that names %s does not wait for ever', (_, dependsOn) => {
    const lanes = story({ capacity: 2, reserve: 0 })
    lanes.auxiliary('a')
    lanes.primary('p', { dependsOn })
    lanes.settle('a')
    expect(lanes.running).toEqual(['p'])
  })

  it('in a ring of primaries that name each other, all go: the first had nobody to wait for', () => {
    const lanes = story()
    lanes.primary('p', { dependsOn: ['r'] })
    lanes.primary('q', { dependsOn: ['p'] })
    lanes.primary('r', { dependsOn: ['q'] })
    for (const id of ['p', 'q', 'r']) {
      expect(lanes.running).toEqual([id])
      lanes.settle(id)
    }
  })

  it('whose dependency is behind a closed gate of its own turn is no deadlock', () => {
    const lanes = story()
    lanes.tell({ type: 'turn.began', turnId: 't', betweenRounds: 'hold' })
    lanes.auxiliary('compaction')
    lanes.primary('p', { turnId: 't', dependsOn: ['compaction'] })
    expect(lanes.running).toEqual(['compaction'])
    lanes.settle('compaction')
    expect(lanes.running).toEqual(['p'])
  })

  it('survives a restart: the dependency still goes first', () => {
    const before = story()
    before.primary('running')
    before.auxiliary('summary')
    before.primary('p', { dependsOn: ['summary'] })
    const lanes = before.restarted()
    expect(lanes.settle('running')).toEqual(['release summary: dependency'])
    expect(lanes.settle('summary')).toEqual(['release p: primary'])
  })
})

describe('promotion by hand', () => {
  it('does the same as a dependency, and is counted', () => {
    const lanes = story({ capacity: 2, reserve: 0 })
    lanes.primary('p')
    lanes.auxiliary('a')
    expect(lanes.tell({ type: 'call.promoted', callId: 'a' })).toEqual(['release a: dependency'])
    expect(lanes.context.counters.dependencyGrants).toBe(1)
  })

  it('waits for a place when there is none, before other auxiliaries and before the next primary', () => {
    const lanes = story()
    lanes.primary('p')
    for (const id of ['a', 'b']) lanes.auxiliary(id)
    lanes.primary('q')
    lanes.tell({ type: 'call.promoted', callId: 'b' })
    expect(lanes.reasonOf('b')).toBe('capacity-full')
    expect(lanes.settle('p')).toEqual(['release b: dependency'])
  })

  it.each([
    ['of a call that nobody knows', 'nobody'],
    ['of a primary', 'p'],
    ['of a call that runs', 'running'],
  ])('%s changes nothing', (_, callId) => {
    const lanes = story()
    lanes.primary('running')
    lanes.primary('p')
    lanes.tell({ type: 'call.promoted', callId })
    expect(lanes.running).toEqual(['running'])
    expect(lanes.waiting).toEqual(['p'])
  })

  it('does not pass the wait that the provider asked for', () => {
    const lanes = story({ capacity: 2, reserve: 0 })
    lanes.auxiliary('a')
    lanes.tell({
      type: 'provider.evidence',
      evidence: { kind: 'overloaded', scope: 'model', retryAfterMs: 5_000, retryable: true, facts: {} },
    })
    lanes.auxiliary('b')
    lanes.tell({ type: 'call.promoted', callId: 'b' })
    expect(lanes.reasonOf('b')).toBe('provider-wait')
    expect(lanes.pass(5_000)).toEqual(['release b: dependency'])
  })
})

describe('a call made inside a call', () => {
  it.each(['primary', 'auxiliary'] as const)(
    'borrows the place of its parent, a %s, at full capacity',
    (lane) => {
      const lanes = story()
      lanes.submit({ id: 'parent', lane })
      expect(lanes.auxiliary('child', { parentId: 'parent' })).toEqual(['admit child: nested'])
      expect(lanes.context.counts.places).toBe(1)
    },
  )

  it('goes one at a time: the parent has one place to lend', () => {
    const lanes = story()
    lanes.auxiliary('parent')
    lanes.auxiliary('one', { parentId: 'parent' })
    lanes.auxiliary('two', { parentId: 'parent' })
    expect(lanes.running).toEqual(['parent', 'one'])
    expect(lanes.settle('one')).toEqual(['release two: nested'])
  })

  it('lends its place on to its own children, however deep', () => {
    const lanes = story()
    lanes.auxiliary('0')
    for (let depth = 1; depth < 50; depth += 1) lanes.auxiliary(`${depth}`, { parentId: `${depth - 1}` })
    expect(lanes.running).toHaveLength(50)
    expect(lanes.context.counts.places).toBe(1)
    for (let depth = 49; depth >= 0; depth -= 1) lanes.settle(`${depth}`)
    expect(lanes.running).toEqual([])
    expect(lanes.context.counts).toMatchObject({ places: 0, auxiliaryInFlight: 0, auxiliaryInTheWay: 0 })
  })

  it('at full width, every child of every parent gets its turn: no deadlock', () => {
    const lanes = story({ capacity: 4, reserve: 0 })
    const parents = ['a', 'b', 'c', 'd']
    for (const id of parents) lanes.auxiliary(id)
    for (const id of parents)
      for (let child = 0; child < 8; child += 1) lanes.auxiliary(`${id}${child}`, { parentId: id })
    let ended = 0
    while (lanes.running.length > parents.length) {
      for (const id of lanes.running) if (id.length > 1) ended += lanes.settle(id).length >= 0 ? 1 : 0
    }
    expect(ended).toBe(32)
    expect(lanes.waiting).toEqual([])
  })

  it('whose parent has ended is a call like any other', () => {
    const lanes = story()
    lanes.auxiliary('parent')
    lanes.settle('parent')
    lanes.primary('p')
    expect(lanes.auxiliary('child', { parentId: 'parent' })).toEqual(['defer child: primary-active'])
  })

  it('whose parent ends before it keeps its own permit, and the place is counted again when it is free', () => {
    const lanes = story()
    lanes.auxiliary('parent')
    lanes.auxiliary('child', { parentId: 'parent' })
    lanes.settle('parent')
    expect(lanes.running).toEqual(['child'])
    lanes.settle('child')
    expect(lanes.context.counts.places).toBe(0)
  })

  it('that waits is withdrawn like any other, and the next goes', () => {
    const lanes = story()
    lanes.auxiliary('parent')
    for (const id of ['one', 'two', 'three']) lanes.auxiliary(id, { parentId: 'parent' })
    lanes.withdraw('two')
    expect(lanes.settle('one')).toEqual(['release three: nested'])
  })

  it('that the provider refuses goes back to its parent, and is tried again in its place', () => {
    const lanes = story({ pacingBaseMs: 0, pacingMaxMs: 0 })
    lanes.auxiliary('parent')
    lanes.auxiliary('child', { parentId: 'parent' })
    lanes.pass(5)
    lanes.refuse('child')
    lanes.settle('parent')
    lanes.pass(1_000)
    expect(lanes.running).toEqual(['child'])
  })

  it('that was promoted, went in its place and comes back, leaves its queue when it goes again', () => {
    const lanes = story({ pacingBaseMs: 0, pacingMaxMs: 0 })
    lanes.auxiliary('parent')
    lanes.auxiliary('one', { parentId: 'parent' })
    lanes.auxiliary('two', { parentId: 'parent' })
    lanes.tell({ type: 'call.promoted', callId: 'two' })
    expect(lanes.settle('one')).toEqual(['release two: nested'])
    lanes.refuse('two')
    lanes.settle('parent')
    lanes.pass(1_000)
    expect(lanes.running).toEqual(['two'])
    lanes.settle('two')
    expect(lanes.context.counts).toMatchObject({ auxiliaryWaiting: 0, auxiliaryInFlight: 0, places: 0 })
    expect(lookup(lanes.context.principals, 'a')).toBeUndefined()
  })

  it('that comes back to its queue stands there once', () => {
    const lanes = story({ pacingBaseMs: 1_000 })
    lanes.auxiliary('first')
    lanes.primary('blocker')
    lanes.auxiliary('second')
    lanes.auxiliary('child', { parentId: 'first' })
    lanes.refuse('child')
    const { queue } = lookup(lanes.context.principals, 'a')!
    expect(toArray(queue).map(({ id }) => id)).toEqual(['second', 'child'])
  })
})

describe('for any dependencies between calls', () => {
  const anyCall = fc.record({
    primary: fc.boolean(),
    needs: fc.array(fc.nat({ max: 12 }), { maxLength: 3 }),
    parent: fc.option(fc.nat({ max: 12 }), { freq: 3 }),
  })

  it('everybody goes once everybody before it has ended', () => {
    fc.assert(
      fc.property(
        fc.array(anyCall, { minLength: 1, maxLength: 13 }),
        fc.integer({ min: 1, max: 3 }),
        (calls, capacity) => {
          const lanes = new Story({ capacity, reserve: 'auto', maxDeferralMs: 600_000, quietWindowMs: 0 })
          for (const [index, { primary, needs, parent }] of calls.entries()) {
            lanes.submit({
              id: `c${index}`,
              lane: primary ? 'primary' : 'auxiliary',
              priorityClass: primary ? 'orchestration' : 'background_ingestion',
              dependsOn: needs.map((id) => `c${id}`),
              parentId: parent === null ? null : `c${parent}`,
            })
          }
          for (let round = 0; round < 200 && lanes.waiting.length + lanes.running.length > 0; round += 1) {
            // Innermost first: a parent ends when its children have.
            const leaf = lanes.running.findLast(
              (id) => ![...HashMap.values(lanes.context.waiting)].some(({ call }) => call.parentId === id),
            )
            const next = leaf ?? lanes.running.at(-1)
            if (next === undefined) lanes.pass(1_000)
            else lanes.settle(next)
          }
          expect([...lanes.running, ...lanes.waiting]).toEqual([])
        },
      ),
      { numRuns: runs(300) },
    )
  })
})
