/** Why the gateway takes no request now, as problem documents. */
import type { Problem } from './problem.ts'

export const journalFailed = (problem: string): Problem => ({
  name: 'journal-failed',
  status: 503,
  title: 'The journal has failed',
  detail: `nothing is admitted any more: ${problem}; make room or mend the disk, and start the gateway again ('rightofway serve' ends by itself with code 75, for a supervisor to start it)`,
  retryAfterS: null,
  retryable: false,
})

export const closing: Problem = {
  name: 'closing',
  status: 503,
  title: 'The gateway is closing',
  detail: 'the gateway takes no new calls; send it again to the next one',
  retryAfterS: 1,
  retryable: true,
}

export const full = (limitBytes: number): Problem => ({
  name: 'full',
  status: 503,
  title: 'Too much is waiting',
  detail: `the bodies of the calls that wait or run would exceed heldBodiesLimitBytes = ${limitBytes}`,
  retryAfterS: 5,
  retryable: true,
})

/** A call of a key and a model that nobody has used yet, while every scope that there is waits, runs or is held back. */
export const tooManyScopes = (limit: number): Problem => ({
  name: 'too-many-scopes',
  status: 503,
  title: 'Too many keys and models',
  detail: `this key and model would be scope ${limit + 1}, scopesLimit = ${limit}, and none of the others may be forgotten now`,
  retryAfterS: 5,
  retryable: true,
})

/** What went wrong may quote the request, so it is neither told nor kept. */
export const fault: Problem = {
  name: 'internal',
  status: 500,
  title: 'The gateway failed',
  detail: 'the gateway met a fault of its own while it handled this request',
  retryAfterS: null,
  retryable: false,
}
