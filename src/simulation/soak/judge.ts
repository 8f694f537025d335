/**
 * The provider's side of I8: every dispatch has a durable record. A call that was dispatched before is
 * dispatched again only after its refusal or preemption was durable.
 */
import type { Decision, ScopeEvent } from '../../../machines/index.ts'
import type { StoredEntry } from '../../journal/journal.ts'
import { InvariantBroken } from '../witness.ts'

interface Standing {
  /** Dispatches that are recorded. */
  sent: number
  /** Recorded refusals and preemptions; each allows one more dispatch. */
  returned: number
  /** Dispatches that the provider saw. */
  seen: number
  /** The call is recorded as dispatched, and not as ended or returned. */
  under: boolean
}

export class Judge {
  readonly #calls = new Map<string, Standing>()
  readonly #dispatchesAgain = new Map<string, boolean>()

  /** A durable entry. */
  recorded({ scope, record }: StoredEntry): void {
    const { event, decisions } = JSON.parse(record) as {
      event: ScopeEvent
      decisions: ReadonlyArray<Decision>
    }
    if (event.type === 'policy.changed') {
      this.#dispatchesAgain.set(scope, event.policy.unknownAfterRestart === 'dispatchAgain')
    }
    if (event.type === 'call.dispatched') this.#sent(scope, event.callId)
    const dispatchesAgain = this.#dispatchesAgain.get(scope) === true
    for (const { callId, verdict, dispatched = false } of decisions) {
      const standing = this.#standing(scope, callId)
      // A running call goes back to its place, and the same event may grant it again.
      const settled = event.type === 'call.settled' && event.callId === callId
      const recovered = event.type === 'host.recovered' && dispatchesAgain
      const returns = (verdict === 'defer' || verdict === 'release') && (settled || recovered)
      if (standing.under && returns) {
        standing.returned += 1
        standing.under = false
      }
      if (dispatched) this.#sent(scope, callId)
    }
  }

  #sent(scope: string, callId: string): void {
    const standing = this.#standing(scope, callId)
    standing.sent += 1
    standing.under = true
  }

  /** The provider gets a dispatch. */
  dispatched(scope: string, callId: string): void {
    const standing = this.#standing(scope, callId)
    if (standing.sent <= standing.seen) {
      throw new InvariantBroken(
        'I8',
        `${callId} was sent ${standing.seen + 1} times, recorded ${standing.sent}`,
      )
    }
    if (standing.seen > 0 && standing.returned < standing.seen) {
      const { seen, returned } = standing
      throw new InvariantBroken(
        'I8',
        `${callId} was sent again after ${seen} dispatches, ${returned} returns`,
      )
    }
    standing.seen += 1
  }

  #standing(scope: string, callId: string): Standing {
    const key = `${scope} ${callId}`
    const known = this.#calls.get(key)
    if (known !== undefined) return known
    const standing = { sent: 0, returned: 0, seen: 0, under: false }
    this.#calls.set(key, standing)
    return standing
  }
}
