/** Importing `rightofway/testing/vitest` adds the matchers to Vitest's `expect`. */
import { expect } from 'vitest'
import type { Reason } from '../../machines/index.ts'
import { laneMatchers } from './matchers.ts'

expect.extend(laneMatchers)

interface LaneMatchers<Result, _Received> {
  /** The call got a permit. */
  readonly toAdmit: (callId: string, reason?: Reason) => Result
  /** The call had to wait, for `reason` if it is given. */
  readonly toDefer: (callId: string, reason?: Reason) => Result
  /** The call was refused, or ended unserved. */
  readonly toRefuse: (callId: string, reason?: Reason) => Result
  /** A primary took the call's place. */
  readonly toPreempt: (callId: string, reason?: Reason) => Result
  /** The first call got its permit before the second, or the second got none. */
  readonly toAdmitBefore: (first: string, second: string) => Result
}

declare module 'vitest' {
  // Named as Vitest names them: all declarations of one interface must agree.
  interface Matchers<R extends void | Promise<void> = void | Promise<void>, T = unknown>
    extends LaneMatchers<R, T> {}
}
