/** Keeps the run of a mutant short and the same each time: few examples of every law, and an end to loops without end. */
import fc from 'fast-check'
import { beforeEach } from 'vitest'

// What fails is not made smaller: nobody reads it.
fc.configureGlobal({ numRuns: 25, seed: 1, endOnFailure: true })

/** Stryker fails a test that passes the changed place more often than its limit, which is too wide for tests as busy as these. */
interface Mutation {
  hitCount?: number
  hitLimit?: number
}

/** Several times what the busiest test needs. */
const hitLimit = 1_000_000

beforeEach(() => {
  const mutation = (globalThis as { __stryker__?: Mutation }).__stryker__
  if (mutation?.hitCount === undefined) return
  mutation.hitCount = 0
  mutation.hitLimit = hitLimit
})
