/** Counts the principals that are looked at to find whose turn it is. */
import { HashMap } from 'effect'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { contractPolicy, type Policy } from '../../../machines/index.ts'
import { enqueueAuxiliary, enterFlight, served } from '../../../machines/scheduling/fairness.ts'
import { nextAuxiliary } from '../../../machines/scheduling/turns.ts'
import type { Waiting } from '../../../machines/state/calls.ts'
import { emptyContext } from '../../../machines/state/context.ts'
import { draftOf } from '../../../machines/state/draft.ts'
import { runs } from '../../properties/runs.ts'
import { blankCall, Story } from '../story.ts'

/** A policy that counts how often it is asked for a principal's weight: once for each look at a turn. */
const countingPolicy = (over: Partial<Policy>) => {
  let looks = 0
  const weights = new Proxy(over.weights ?? {}, {
    getOwnPropertyDescriptor: (target, name) => {
      looks += 1
      return Reflect.getOwnPropertyDescriptor(target, name)
    },
  })
  return { policy: { ...contractPolicy, ...over, weights }, looks: () => looks }
}

describe('whose turn it is', () => {
  it('is found in a bounded number of looks for each principal, whatever the calls and the quantum are', () => {
    const principals = fc.array(
      fc.record({
        tokens: fc.constantFrom(0, 1, 1_000, 1_000_000, 999_999_999, 1_000_000_000),
        weight: fc.constantFrom(0.01, 1, 1_000),
        atQuota: fc.boolean(),
        isOut: fc.boolean(),
      }),
      { minLength: 1, maxLength: 12 },
    )
    fc.assert(
      fc.property(principals, fc.constantFrom(1, 7, 64_000), (list, quantumTokens) => {
        const { policy, looks } = countingPolicy({
          quantumTokens,
          weights: Object.fromEntries(list.map(({ weight }, index) => [`r${index}`, weight])),
          quotas: Object.fromEntries(
            list.flatMap(({ atQuota }, index) => (atQuota ? [[`r${index}`, 1]] : [])),
          ),
        })
        const draft = draftOf(emptyContext('test', policy), 1_000)
        for (const [index, { tokens, atQuota, isOut }] of list.entries()) {
          const principal = `r${index}`
          const priorityClass = isOut ? 'hydration' : 'background_ingestion'
          if (atQuota) enterFlight(draft, principal)
          const waiting: Waiting = {
            call: { ...blankCall, id: `c${index}`, principal, inputTokens: tokens, priorityClass },
            seq: draft.nextSeq++,
            submittedAt: 1_000,
            attempts: 0,
            triedAtMs: 0,
            sizeRefusals: 0,
            reason: 'behind-others',
            urgent: false,
            inheritedRank: null,
            waitsFor: [],
            unclaimedUntilMs: null,
            dispatchAtOnce: false,
            heldFromMs: 0,
          }
          draft.waiting = HashMap.set(draft.waiting, waiting.call.id, waiting)
          enqueueAuxiliary(draft, waiting)
        }
        for (;;) {
          const before = looks()
          const next = nextAuxiliary(draft, (line) => line === 'hydration')
          expect(looks() - before).toBeLessThanOrEqual(3 * list.length)
          if (next === null) break
          served(draft, next, true)
          draft.waiting = HashMap.remove(draft.waiting, next.call.id)
        }
        const left = list.filter(({ atQuota, isOut }) => atQuota || isOut).length
        expect(HashMap.size(draft.waiting)).toBe(left)
      }),
      { numRuns: runs(200) },
    )
  })

  it('is found for a call of a thousand million tokens under a quantum of one, beside a principal at its quota', () => {
    const lanes = new Story({ capacity: 4, reserve: 0, quantumTokens: 1, quotas: { full: 1 } })
    lanes.auxiliary('f0', { principal: 'full' })
    lanes.auxiliary('f1', { principal: 'full' })
    expect(lanes.auxiliary('huge', { principal: 'b', inputTokens: 1_000_000_000 })).toEqual([
      'admit huge: open',
    ])
    expect(lanes.reasonOf('f1')).toBe('quota')
  })
})
