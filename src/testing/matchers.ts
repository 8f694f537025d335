/** Matchers for a script that was played: `expect.extend(laneMatchers)`. */
import type { Decision, Reason } from '../../machines/index.ts'
import type { Played } from './play.ts'

interface Verdict {
  readonly pass: boolean
  readonly message: () => string
}

const shown = (decisions: ReadonlyArray<Decision>): string =>
  decisions.length === 0
    ? 'no decision'
    : decisions.map(({ callId, verdict, reason }) => `${callId}: ${verdict} (${reason})`).join(', ')

const judged =
  (verdicts: ReadonlyArray<Decision['verdict']>, word: string) =>
  (played: Played, callId: string, reason?: Reason): Verdict => {
    const own = played.decisionsOf(callId)
    const pass = own.some(
      (one) => verdicts.includes(one.verdict) && (reason === undefined || one.reason === reason),
    )
    const because = reason === undefined ? '' : ` (${reason})`
    return {
      pass,
      message: () => `expected ${callId} ${pass ? 'not ' : ''}to be ${word}${because}; got ${shown(own)}`,
    }
  }

export const laneMatchers = {
  /** The call got a permit. */
  toAdmit: judged(['admit', 'release'], 'admitted'),
  /** The call had to wait, for `reason` if it is given. */
  toDefer: judged(['defer'], 'deferred'),
  /** The call was refused, or ended unserved. */
  toRefuse: judged(['reject', 'expire'], 'refused'),
  /** A primary took the call's place. */
  toPreempt: judged(['cancel'], 'preempted'),
  /** The first call got its permit before the second, or the second got none. */
  toAdmitBefore: (played: Played, first: string, second: string): Verdict => {
    const order = played.decisions.filter(({ verdict }) => verdict === 'admit' || verdict === 'release')
    const [one, other] = [first, second].map((callId) => order.findIndex((each) => each.callId === callId))
    const pass = one !== -1 && (other === -1 || (one as number) < (other as number))
    return {
      pass,
      message: () =>
        `expected ${first} ${pass ? 'not ' : ''}to be admitted before ${second}; got ${shown(order)}`,
    }
  },
}
