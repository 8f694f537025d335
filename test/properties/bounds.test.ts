/** I5 and I6 as numbers: the longest wait of a primary, and of an auxiliary. */
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { type PolicyInput, parsePolicy, worstCaseWaitMs } from '../../machines/index.ts'
import { runs } from './runs.ts'
import { anyPolicy, Drive } from './scope-drive.ts'

const submission = (lane: 'primary' | 'auxiliary', principal = 'a', inputTokens = 60_000) =>
  ({
    do: 'submit',
    call: {
      lane,
      priorityClass: lane === 'primary' ? 'interactive' : 'background_ingestion',
      principal,
      inputTokens,
    },
    deadlineMs: null,
    nestIn: null,
    needs: null,
  }) as const

const withoutLimits = anyPolicy.map((policy): PolicyInput => ({ ...policy, limits: {}, qos: null }))

describe('I6', () => {
  it('an uncontended primary is admitted by the very event that submits it, after any number of others', () => {
    fc.assert(
      fc.property(withoutLimits, fc.nat({ max: 5 }), (policy, before) => {
        const drive = new Drive(policy)
        for (let count = 0; count < before; count += 1)
          drive.move(submission(count % 2 === 0 ? 'auxiliary' : 'primary'))
        drive.drain()
        const known = drive.decisions.length
        drive.move(submission('primary'))
        expect(drive.decisions[known]).toMatchObject({ verdict: 'admit', reason: 'primary' })
      }),
    )
  })

  it('a primary waits for auxiliaries that never settle at most patience and grace, whatever the in-flight policy', () => {
    fc.assert(
      fc.property(withoutLimits, fc.integer({ min: 1, max: 5 }), (chosen, auxiliaries) => {
        // One place for the primary beside those that never come free, and no quantum in between.
        const policy = parsePolicy({
          preset: 'contract',
          ...chosen,
          capacity: 8,
          principalQuota: null,
          maxDeferralMs: 30 * 24 * 3_600_000,
          auxiliaryActiveTimeoutMs: 3_600_000,
        })
        const drive = new Drive(policy)
        for (let count = 0; count < auxiliaries; count += 1) drive.move(submission('auxiliary'))
        const submittedAt = drive.at
        const known = drive.decisions.length
        drive.move(submission('primary'))
        const isIn = () =>
          drive.decisions
            .slice(known)
            .some(({ verdict, reason }) => reason === 'primary' && verdict !== 'defer')
        while (!isIn()) expect(drive.wake()).toBe(true)
        expect(drive.at - submittedAt).toBeLessThanOrEqual(policy.patienceMs + policy.graceMs)
      }),
    )
  })
})

describe('I5', () => {
  it('an auxiliary that primaries hold without end is released within worstCaseWaitMs', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 2, max: 6 }),
        fc.integer({ min: 1, max: 3 }),
        fc.integer({ min: 1, max: 3 }),
        fc.constantFrom('settle' as const, 'tolerate' as const, 'cancel' as const),
        fc.constantFrom(1, 60_000, 60_001, 200_000),
        (capacity, principals, callsEach, inFlight, largestCallTokens) => {
          const policy = parsePolicy({
            preset: 'contract',
            capacity,
            inFlight,
            maxDeferralMs: 10_000,
            quantumTokens: 60_000,
            patienceMs: 1_000,
            graceMs: 100,
          })
          const drive = new Drive(policy)
          drive.move(submission('primary'))
          for (let call = 0; call < callsEach; call += 1) {
            for (let one = 0; one < principals; one += 1) {
              const inputTokens = one === 0 ? largestCallTokens : 60_000
              drive.move(submission('auxiliary', 'abc'[one]!, inputTokens))
            }
          }
          const startedAt = drive.at
          const boundMs = worstCaseWaitMs(policy, {
            principals,
            callsAhead: callsEach - 1,
          })
          // Primaries follow one another without a gap; every running call is answered after a second.
          while (drive.context.counts.auxiliaryWaiting > 0) {
            drive.at += 1_000
            drive.move(submission('primary'))
            drive.move({ do: 'settle', pick: 0, outcome: 'completed', owner: null })
            drive.tell({ type: 'clock.woke', at: drive.at })
            expect(drive.at - startedAt).toBeLessThanOrEqual(boundMs + principals * callsEach * 2_000)
          }
        },
      ),
      { numRuns: runs(60) },
    )
  })
})
