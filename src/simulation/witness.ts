/**
 * Watches one scope from outside and checks its invariants. It keeps its own small account of every call,
 * from events and decisions alone, so that it cannot share the core's mistakes.
 */
import { Data, HashMap } from 'effect'
import {
  type Decision,
  type Policy,
  reserveOf,
  type ScopeContext,
  type ScopeEvent,
} from '../../machines/index.ts'
import { type Account, Accounts } from './accounts.ts'

/** An invariant that did not hold: its number, and the fault. */
export class InvariantBroken extends Data.TaggedError('InvariantBroken')<{
  readonly invariant: string
  readonly message: string
}> {
  constructor(invariant: string, problem: string) {
    super({ invariant, message: `${invariant}: ${problem}` })
  }
}

const gateExceptions: ReadonlySet<string> = new Set(['dependency', 'nested', 'warm-up', 'backfill'])

const hold = (holds: boolean, invariant: string, problem: () => string): void => {
  if (!holds) throw new InvariantBroken(invariant, problem())
}

export class Witness {
  readonly #accounts = new Accounts()
  #policy: Policy
  /** Turns that have had a permit. */
  readonly #begun = new Set<string>()
  /** Grants that passed a closed gate, by reason. */
  readonly exceptions = new Map<string, number>()

  constructor(policy: Policy) {
    this.#policy = policy
  }

  /** Checks the step from one context to the next against the invariants. Throws `InvariantBroken`. */
  observe(event: ScopeEvent, decisions: ReadonlyArray<Decision>, after: ScopeContext): void {
    const touched = new Set(decisions.map(({ callId }) => callId))
    if ('callId' in event) touched.add(event.callId)
    if (event.type === 'call.submitted') touched.add(event.call.id)
    this.#fact(event)
    for (const decision of decisions) this.#decide(decision)
    const all = event.type === 'host.recovered' || event.type === 'policy.changed'
    for (const id of all ? [...this.#accounts.live.keys()] : touched) this.#agree(id, after)
    this.#sumsAgree(after)
  }

  /** Checks that every known call has ended. */
  finish(): void {
    for (const id of this.#accounts.live.keys()) throw new InvariantBroken('I3', `call ${id} never ended`)
  }

  #fact(event: ScopeEvent): void {
    const accounts = this.#accounts
    const account = 'callId' in event ? accounts.live.get(event.callId) : undefined
    switch (event.type) {
      case 'call.submitted': {
        const { id } = event.call
        const known = accounts.live.get(id)
        if (known !== undefined) accounts.change(known, { orphan: false })
        else if (!accounts.hasEnded(id)) accounts.open(event.call)
        return
      }
      case 'call.settled':
        // The decision that follows shows the fate of a refused or preempted call; without one, the call has
        // ended.
        if (account?.standing === 'in flight')
          accounts.change(account, { standing: 'settling', orphan: event.owner === 'away' })
        return
      case 'call.dispatched':
      case 'call.accepted':
        if (account?.standing === 'in flight') accounts.change(account, { sent: true })
        return
      case 'call.withdrawn':
        if (account?.standing === 'waiting' || (account?.standing === 'in flight' && !account.sent)) {
          accounts.change(account, { standing: 'settling', withdrawn: true })
        }
        return
      case 'policy.changed':
        this.#policy = event.policy
        return
      case 'host.recovered':
        for (const one of [...accounts.live.values()]) {
          if (one.standing === 'in flight') accounts.change(one, { standing: 'settling' })
          if (one.standing === 'waiting') accounts.change(one, { orphan: true })
        }
        return
      default:
        return
    }
  }

  #decide(decision: Decision): void {
    const { callId, verdict, reason } = decision
    const account = this.#accounts.live.get(callId)
    if (account === undefined) {
      const answered = verdict === 'reject' && this.#accounts.hasEnded(callId)
      return hold(answered, 'I3', () => `${verdict} of ${callId}, which is not live`)
    }
    switch (verdict) {
      case 'admit':
      case 'release':
        return this.#grant(account, decision)
      case 'defer': {
        const isBack = account.standing === 'settling'
        const returns = account.returns + (isBack ? 1 : 0)
        const orphan = reason === 'recovered' || (isBack && account.orphan)
        this.#accounts.change(account, { standing: 'waiting', returns, orphan })
        return
      }
      case 'reject':
      case 'expire':
        this.#accounts.change(account, { standing: 'ended' })
        return
      case 'cancel':
        return hold(account.lane === 'auxiliary', 'I3', () => `primary ${callId} was preempted`)
    }
  }

  #grant(account: Account, decision: Decision): void {
    const { callId, reason, state, dispatched = false } = decision
    const { standing } = account
    hold(standing === 'waiting' || standing === 'settling', 'I4', () => `${callId} granted while ${standing}`)
    const returns = account.returns + (standing === 'settling' ? 1 : 0)
    const grants = account.grants + 1
    hold(grants <= returns + 1, 'I4', () => `${callId} granted ${grants} times, returned ${returns} times`)
    const exception = gateExceptions.has(reason)
    if (exception) this.exceptions.set(reason, (this.exceptions.get(reason) ?? 0) + 1)
    else if (account.lane === 'auxiliary') this.#holdAuxiliary(account, decision)
    else hold(state.startsWith('quietRamp'), 'I1', () => `primary ${callId} granted in ${state}`)
    if (account.turnId !== null) this.#begun.add(account.turnId)
    const borrowed = reason === 'nested'
    const promoted = account.promoted || (exception && account.lane === 'auxiliary')
    this.#accounts.change(account, {
      standing: 'in flight',
      sent: dispatched,
      borrowed,
      promoted,
      grants,
      returns,
    })
    const { places } = this.#accounts.sums
    const { capacity } = this.#policy
    hold(borrowed || places <= capacity, 'I2', () => `${places} in flight, capacity ${capacity}`)
  }

  #holdAuxiliary(account: Account, { callId, reason, state }: Decision): void {
    const closed = state === 'primaryPending' || state.startsWith('quietRamp')
    hold(!closed, 'I1', () => `auxiliary ${callId} granted (${reason}) in ${state}`)
    const { waitingPrimaries, auxiliaries } = this.#accounts.sums
    const past = waitingPrimaries === 0 || reason === 'fairness'
    hold(past, 'I1', () => `${callId} granted (${reason}) past ${waitingPrimaries} waiting primaries`)
    const places = this.#policy.capacity - reserveOf(this.#policy)
    hold(auxiliaries < places, 'I2', () => `${auxiliaries} auxiliaries in flight, ${places} places`)
    const { turnId } = account
    const favored = this.#policy.favor !== 'arrival' && turnId !== null && this.#begun.has(turnId)
    hold(
      favored || this.#accounts.isFirst(account),
      'I4',
      () => `${callId} went before another of its principal`,
    )
  }

  /** Checks that the core's state and this account agree on a call. */
  #agree(id: string, after: ScopeContext): void {
    const account = this.#accounts.live.get(id)
    if (account === undefined) return
    const waits = HashMap.has(after.waiting, id)
    const runs = HashMap.has(after.inFlight, id)
    if (account.standing === 'in flight') hold(runs, 'I3', () => `${id} runs by decision, not by the books`)
    else if (account.standing === 'waiting')
      hold(waits, 'I3', () => `${id} waits by decision, not by the books`)
    else {
      hold(!waits && !runs, 'I3', () => `${id} lives on after its end`)
      this.#accounts.end(account)
    }
  }

  #sumsAgree({ counts }: ScopeContext): void {
    const { waiting, inFlight } = this.#accounts.sums
    const theirs = counts.primaryWaiting + counts.auxiliaryWaiting
    hold(theirs === waiting, 'I3', () => `${waiting} wait, the books count ${theirs}`)
    const flights = counts.primaryInFlight + counts.auxiliaryInFlight
    hold(flights === inFlight, 'I3', () => `${inFlight} in flight, the books count ${flights}`)
  }
}
