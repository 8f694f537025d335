/** A scope's status about its lanes agrees with its calls, at every moment of any history. */
import { HashMap } from 'effect'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { Lane, ScopeContext } from '../../machines/index.ts'
import { decodeScope, encodeScope } from '../../machines/snapshot/codec.ts'
import { scopeStatus } from '../../src/host/scope-facts.ts'
import type { LaneStatus } from '../../src/host/status.ts'
import { Story } from '../machines/story.ts'
import { anyMove, anyPolicy, Drive } from '../properties/scope-drive.ts'

/** The same, by looking at every call. */
const counted = ({ waiting, inFlight }: ScopeContext, lane: Lane, nowMs: number): LaneStatus => {
  const ages = [...HashMap.values(waiting)].flatMap(({ call, submittedAt }) =>
    call.lane === lane ? [nowMs - submittedAt] : [],
  )
  const runs = [...HashMap.values(inFlight)].flatMap(({ call, grantedAt }) =>
    call.lane === lane ? [nowMs - grantedAt] : [],
  )
  return {
    waiting: ages.length,
    inFlight: runs.length,
    longestWaitMs: ages.length === 0 ? null : Math.max(...ages),
    longestActiveMs: runs.length === 0 ? null : Math.max(...runs),
  }
}

const isAsCounted = (context: ScopeContext, laterMs: number): void => {
  const nowMs = context.at + laterMs
  const { primary, auxiliary } = scopeStatus(context, nowMs)
  expect({ primary, auxiliary }).toEqual({
    primary: counted(context, 'primary', nowMs),
    auxiliary: counted(context, 'auxiliary', nowMs),
  })
}

describe('the lanes of a status', () => {
  it('name the longest wait and the longest run', () => {
    const story = new Story({ capacity: 1, reserve: 0 })
    story.auxiliary('runs')
    story.pass(1_000)
    for (const id of ['gone', 'first', 'second']) {
      story.auxiliary(id)
      story.pass(100)
    }
    story.withdraw('gone')
    expect(scopeStatus(story.context, story.context.at)).toMatchObject({
      primary: { waiting: 0, inFlight: 0, longestWaitMs: null, longestActiveMs: null },
      auxiliary: { waiting: 2, inFlight: 1, longestWaitMs: 200, longestActiveMs: 1_300 },
    })
  })

  it('are what looking at every call would find, also after a restart', () => {
    fc.assert(
      fc.property(anyPolicy, fc.array(anyMove, { maxLength: 60 }), fc.nat(1e6), (policy, moves, laterMs) => {
        const drive = new Drive(policy)
        for (const move of moves) {
          drive.move(move)
          isAsCounted(drive.context, laterMs)
        }
        isAsCounted(decodeScope(JSON.parse(JSON.stringify(encodeScope(drive.context)))), laterMs)
      }),
    )
  })
})
