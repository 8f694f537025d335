/** The laws of order at length. A failure prints its seed and the shrunk story. */
import fc from 'fast-check'
import { it } from 'vitest'
import { anyOrderStory, driveInOrder } from './order-drive.ts'
import { runs } from './runs.ts'

it('keeps the laws of order in twelve thousand stories', { timeout: 1_200_000 }, () => {
  fc.assert(
    fc.property(anyOrderStory, ({ policy, moves }) => {
      driveInOrder(policy, moves)
    }),
    { numRuns: runs(12_500) },
  )
})
