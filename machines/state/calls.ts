/** Calls as a scope keeps them: where they stand, while they wait and while they run. */
import type { Cost } from '../limits/budget.ts'
import type { Call } from '../model/call.ts'
import type { DeferReason, GrantReason } from '../model/decision.ts'

/**
 * A call's place: its number in order of submission. The call keeps it through every refusal and preemption.
 */
export interface Place {
  readonly seq: number
  readonly id: string
}

/** A call that waits. */
export interface Waiting {
  readonly call: Call
  readonly seq: number
  readonly submittedAt: number
  /** Dispatches so far. */
  readonly attempts: number
  /** When it was dispatched last, epoch milliseconds; 0: never. */
  readonly triedAtMs: number
  /** Refusals so far that may have been for its own size. */
  readonly sizeRefusals: number
  readonly reason: DeferReason
  /** An auxiliary that may pass a closed gate. */
  readonly urgent: boolean
  /** Of a primary that others wait for: the best of their ranks, where that is better than its own; else null. */
  readonly inheritedRank: number | null
  /** Ids of calls that must end first; empty when the call stands in its queue. */
  readonly waitsFor: ReadonlyArray<string>
  /** Epoch milliseconds at which the call expires unless its owner claims it; null when it has an owner. */
  readonly unclaimedUntilMs: number | null
  /** The owner sends as soon as it holds the permit. */
  readonly dispatchAtOnce: boolean
  /** Its turn had a permit before. Missing where it had none, or where the policy does not ask. */
  readonly ofBegunTurn?: true
  /** Reading of the held clock when it was submitted. */
  readonly heldFromMs: number
}

/** A call that holds a permit. */
export interface InFlight {
  readonly call: Call
  readonly seq: number
  readonly submittedAt: number
  /** Dispatches so far, this one included. */
  readonly attempts: number
  /** Refusals so far that may have been for its own size. */
  readonly sizeRefusals: number
  readonly grantedAt: number
  readonly stage: 'admitted' | 'dispatched' | 'accepted'
  readonly grant: GrantReason
  /** The cancel policy asked for the place back. */
  readonly preempted: boolean
  /** The call borrows its parent's place, so it takes none of its own. */
  readonly borrowed: boolean
  /** The call counts against its class's window until it is accepted. */
  readonly paced: boolean
  /** What was taken from the budget for it. */
  readonly taken: Cost
  /** Reading of the held clock when it was submitted. */
  readonly heldFromMs: number
  /** The turn that an auxiliary took, so that a refusal gives it back; null for any other call. */
  readonly turn: TakenTurn | null
}

/** A principal's turn as it was taken. */
export interface TakenTurn {
  /** The place of its principal in the order of age. */
  readonly place: number | null
  /** Its principal's tag before and after it. */
  readonly tag: number
  readonly endTag: number
  /** Its principal's `servedAt` and `heldFromMs` as they were. */
  readonly servedAt: number
  readonly heldFromMs: number
}
