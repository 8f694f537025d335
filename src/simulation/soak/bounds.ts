/**
 * I5 and I6 as numbers, in a scope whose provider refuses no call. Time counts only while the scope itself
 * delays a call, and not while the call lacks a place.
 */
import { HashMap } from 'effect'
import { reserveOf, type ScopeContext, worstCaseWaitMs } from '../../../machines/index.ts'
import { endingOf } from '../../../machines/scheduling/lifecycle.ts'
import type { Record } from '../../host/read-record.ts'
import { InvariantBroken } from '../witness.ts'

/** Total delay by primaries, or by auxiliaries in their way, ms since the start. */
interface Kept {
  auxiliaries: number
  primaries: number
}

interface Entered {
  /** The sum at the time when the call took its place. */
  readonly sinceMs: number
  readonly boundMs: number
}

/** Two events of one wake-up may differ by a moment. */
const slackMs = 5

export class Bounds {
  readonly #kept: Kept = { auxiliaries: 0, primaries: 0 }
  readonly #waiting = new Map<string, Entered>()
  readonly #principals = new Set<string>()

  /** Throws `InvariantBroken`. */
  observe({ event, decisions }: Record, before: ScopeContext, after: ScopeContext): void {
    // While the host was down no call could be delayed or released.
    if (event.type === 'host.recovered') this.#waiting.clear()
    else this.#pass(before, after.at - before.at)
    this.#holdAll(before)
    if (event.type === 'call.submitted') {
      this.#principals.add(event.call.principal)
      this.#admittedAtOnce(event.call.id, { event, decisions }, before)
    }
    if (event.type === 'policy.changed') this.#waiting.clear()
    for (const { callId, verdict, reason } of decisions) {
      if (verdict !== 'defer') this.#waiting.delete(callId)
      // A preempted call takes its place again, ahead of calls that were counted without it.
      else if (reason === 'preempted') this.#waiting.clear()
    }
    this.#enter(after)
  }

  #pass(before: ScopeContext, ms: number): void {
    const { policy, counts, state } = before
    const placeFree = counts.places < policy.capacity
    const auxiliaryPlaceFree = placeFree && counts.auxiliaryInFlight < policy.capacity - reserveOf(policy)
    const kept = state === 'primaryPending' || state.startsWith('quietRamp')
    if (kept && auxiliaryPlaceFree) this.#kept.auxiliaries += ms
    if (kept && placeFree) this.#kept.primaries += ms
  }

  #holdAll(context: ScopeContext): void {
    for (const [id, { sinceMs, boundMs }] of this.#waiting) {
      const waiting = HashMap.has(context.waiting, id) ? HashMap.getUnsafe(context.waiting, id) : null
      if (waiting === null) continue
      const auxiliary = waiting.call.lane === 'auxiliary'
      const keptMs = (auxiliary ? this.#kept.auxiliaries : this.#kept.primaries) - sinceMs
      if (keptMs <= boundMs + slackMs) continue
      throw new InvariantBroken(
        auxiliary ? 'I5' : 'I6',
        `${waiting.call.lane} ${id} was kept for ${keptMs} ms, its bound is ${boundMs} ms`,
      )
    }
  }

  /** Adds the calls that stand in their queues and are not known yet. */
  #enter({ waiting, policy }: ScopeContext): void {
    for (const { call, seq, waitsFor, unclaimedUntilMs } of HashMap.values(waiting)) {
      if (this.#waiting.has(call.id) || waitsFor.length > 0 || unclaimedUntilMs !== null) continue
      const ahead = [...HashMap.values(waiting)].filter(
        (other) => other.call.lane === call.lane && other.seq < seq,
      )
      if (call.lane === 'auxiliary') {
        const { principal } = call
        const own = ahead.filter((other) => other.call.principal === principal)
        const boundMs = worstCaseWaitMs(policy, {
          principals: this.#principals.size,
          callsAhead: own.length,
        })
        this.#waiting.set(call.id, { sinceMs: this.#kept.auxiliaries, boundMs })
      } else if (ahead.length === 0) {
        // One fairness quantum may come before the primary; after it, auxiliaries are in its way again.
        const boundMs = 2 * (policy.patienceMs + policy.graceMs)
        this.#waiting.set(call.id, { sinceMs: this.#kept.primaries, boundMs })
      }
    }
  }

  /** A primary that no auxiliary delays is granted by the event that submits it. */
  #admittedAtOnce(id: string, { event, decisions }: Record, before: ScopeContext): void {
    if (event.type !== 'call.submitted' || event.call.lane !== 'primary') return
    const { counts, waiting, inFlight, policy } = before
    const isLive = HashMap.has(waiting, id) || HashMap.has(inFlight, id)
    const isNew = !isLive && endingOf(before, id) === undefined
    const alone = counts.auxiliaryInFlight + counts.auxiliaryWaiting + counts.primaryWaiting === 0
    if (!isNew || !alone || counts.places >= policy.capacity || event.call.dependsOn.length > 0) return
    if (decisions.some(({ callId, verdict }) => callId === id && verdict === 'admit')) return
    throw new InvariantBroken('I6', `nobody was in the way of ${id}, but it got ${JSON.stringify(decisions)}`)
  }
}
