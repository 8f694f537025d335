import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { anyOrderStory, driveInOrder } from './order-drive.ts'
import { runs } from './runs.ts'

describe('order, under policies at their edges', () => {
  it('keeps no free place, token or quota from a call that may have it, unless what holds it is named and true', () => {
    let judged = 0
    fc.assert(
      fc.property(anyOrderStory, ({ policy, moves }) => {
        judged += driveInOrder(policy, moves)
      }),
      { numRuns: runs(400) },
    )
    expect(judged).toBeGreaterThan(runs(400))
  })
})
