import type { LaneScope } from '../host/host.ts'
import type { CallRequest } from '../host/request.ts'

/**
 * Takes a call out of the place that it went back to, when its owner will not ask again: what was
 * delivered of its answer cannot be taken back. It is asked for first, so that a permit which is on
 * its way already comes here and is returned.
 */
export const giveUp = async (scope: LaneScope, request: CallRequest): Promise<void> => {
  const gone = new AbortController()
  const asked = scope.admit({ ...request, signal: gone.signal })
  gone.abort(new Error(`nobody waits for call ${request.id} any more`))
  try {
    const permit = await asked
    permit.settle({ outcome: 'cancelled' })
  } catch {
    // Withdrawn, as it should be.
  }
}
