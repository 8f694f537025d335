/** Keeps the run of a mutant short and the same each time: few examples of every law, and an end to loops without end. */
import fc from 'fast-check'
import { afterEach, beforeEach } from 'vitest'

// Failing examples are not shrunk, because no person reads them.
fc.configureGlobal({ numRuns: 25, seed: 1, endOnFailure: true })

/** Shared by Stryker's setup and the changed code. */
interface Mutation {
  /** How often the changed place was passed; absent while nothing is changed. */
  hitCount?: number
  /** More hits than this fail the test: a loop without end. */
  hitLimit?: number
  noticed?: boolean
}

/** Several times the time of the slowest test, and far below Stryker's own limit. */
const mostHits = 1_000_000

const mutation = (): Mutation => (globalThis as { __stryker__?: Mutation }).__stryker__ ?? {}

// The files that are still to come need not be loaded.
if (mutation().noticed) throw new Error('the change has been noticed')

beforeEach(() => {
  const active = mutation()
  if (active.hitCount === undefined) return
  active.hitCount = 0
  active.hitLimit = Math.min(active.hitLimit ?? mostHits, mostHits)
})

afterEach(({ task }) => {
  if (task.result?.state === 'fail') mutation().noticed = true
})
