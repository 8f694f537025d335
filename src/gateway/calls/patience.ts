/** How long a call may wait for its provider, and whether it is known already that this will not do. */
import type { Call, ScopeContext } from '../../../machines/index.ts'
import { statedUntil } from '../../../machines/limits/belief/stated-waits.ts'

/** The last moment at which the call may still be waiting, epoch milliseconds. */
export const waitsUntil = (
  { policy }: ScopeContext,
  call: Call,
  deadlineAt: number | null,
  askedAt: number,
): number => {
  const pendingMs =
    call.lane === 'primary' ? policy.primaryPendingTimeoutMs : policy.auxiliaryPendingTimeoutMs
  return Math.min(askedAt + pendingMs, deadlineAt ?? Number.POSITIVE_INFINITY)
}

/**
 * The end of the scope's stated wait, epoch milliseconds; 0 without one. While a call finds out whether the
 * wait is over, its end is a bound of ours and nothing that the provider stated.
 */
export const scopeWaitUntil = ({ wait }: Pick<ScopeContext, 'wait'>): number =>
  wait === null || wait.probeId !== null ? 0 : wait.untilMs

/** The end of a wait that the provider imposed and that outlasts the call's own, epoch milliseconds; null when there is none. */
export const hopelessWait = (
  context: ScopeContext,
  { inputTokens }: Call,
  untilMs: number,
): number | null => {
  const statedMs = Math.max(scopeWaitUntil(context), statedUntil(context.belief, inputTokens, 0))
  return statedMs > untilMs ? statedMs : null
}

/** Answers that are kept to be told to others, at most. */
const mostKept = 1_000
/** Longer ones are not kept, bytes. */
const mostBodyBytes = 65_536

/** By scope, the provider's answer that imposed a wait. Calls that come during the wait are told it. Kept in memory alone. */
export class WaitAnswers<Answer extends { readonly body: Buffer }> {
  readonly #answers = new Map<string, Answer>()

  keep(scope: string, answer: Answer): void {
    this.#answers.delete(scope)
    if (answer.body.byteLength > mostBodyBytes) return
    this.#answers.set(scope, answer)
    if (this.#answers.size <= mostKept) return
    const [oldest] = this.#answers.keys()
    if (oldest !== undefined) this.#answers.delete(oldest)
  }

  forget(scope: string): void {
    this.#answers.delete(scope)
  }

  of(scope: string): Answer | null {
    return this.#answers.get(scope) ?? null
  }
}
