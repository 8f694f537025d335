/**
 * Watches one scope from outside and holds it to its invariants. It keeps its own small account
 * of every call, made from events and decisions alone, so that it cannot share the core's mistakes.
 */
import { HashMap } from 'effect'
import {
  type Decision,
  type Policy,
  reserveOf,
  type ScopeContext,
  type ScopeEvent,
} from '../../machines/index.ts'

/** An invariant that did not hold: which, and how. */
export class InvariantBroken extends Error {
  readonly _tag = 'InvariantBroken'
  readonly invariant: string
  constructor(invariant: string, problem: string) {
    super(`${invariant}: ${problem}`)
    this.name = 'InvariantBroken'
    this.invariant = invariant
  }
}

interface Account {
  readonly lane: 'primary' | 'auxiliary'
  readonly principal: string
  readonly order: number
  readonly parentId: string | null
  standing: 'waiting' | 'in flight' | 'settling' | 'ended'
  /** Unclaimed after a restart: it stands in no queue. */
  orphan: boolean
  promoted: boolean
  borrowed: boolean
  sent: boolean
  grants: number
  returns: number
  ends: number
}

const gateExceptions: ReadonlySet<string> = new Set(['dependency', 'nested', 'warm-up', 'backfill'])

const hold = (holds: boolean, invariant: string, problem: () => string): void => {
  if (!holds) throw new InvariantBroken(invariant, problem())
}

export class Witness {
  /** Calls that wait or run; everything that is looked at after every event. */
  readonly #calls = new Map<string, Account>()
  readonly #ended = new Map<string, Account>()
  #policy: Policy
  #order = 0
  /** Grants that were let through a closed gate, by reason. */
  readonly exceptions = new Map<string, number>()

  constructor(policy: Policy) {
    this.#policy = policy
  }

  /** Holds the step from one context to the next to the invariants. Throws `InvariantBroken`. */
  observe(event: ScopeEvent, decisions: ReadonlyArray<Decision>, after: ScopeContext): void {
    this.#fact(event)
    for (const decision of decisions) this.#decide(decision)
    this.#agree(after)
  }

  /** Every call that was seen has ended, each once. */
  finish(): void {
    for (const id of this.#calls.keys()) throw new InvariantBroken('I3', `call ${id} never ended`)
    for (const [id, account] of this.#ended) {
      hold(account.ends === 1, 'I3', () => `call ${id} ended ${account.ends} times`)
      hold(
        account.grants <= account.returns + 1,
        'I4',
        () => `call ${id} was granted ${account.grants} times`,
      )
    }
  }

  #fact(event: ScopeEvent): void {
    switch (event.type) {
      case 'call.submitted': {
        const known = this.#calls.get(event.call.id)
        if (known !== undefined) known.orphan = false
        if (known !== undefined || this.#ended.has(event.call.id)) return
        this.#calls.set(event.call.id, {
          lane: event.call.lane,
          principal: event.call.principal,
          order: this.#order++,
          parentId: event.call.parentId,
          standing: 'waiting',
          orphan: false,
          promoted: false,
          borrowed: false,
          sent: false,
          grants: 0,
          returns: 0,
          ends: 0,
        })
        return
      }
      case 'call.settled': {
        const account = this.#calls.get(event.callId)
        // What becomes of a refused or preempted call shows in the decision that follows, or in its absence.
        if (account?.standing === 'in flight') account.standing = 'settling'
        return
      }
      case 'call.dispatched':
      case 'call.accepted': {
        const account = this.#calls.get(event.callId)
        if (account?.standing === 'in flight') account.sent = true
        return
      }
      case 'call.withdrawn': {
        const account = this.#calls.get(event.callId)
        if (account?.standing === 'waiting' || (account?.standing === 'in flight' && !account.sent)) {
          account.standing = 'settling'
        }
        return
      }
      case 'policy.changed':
        this.#policy = event.policy
        return
      case 'host.recovered':
        for (const account of this.#calls.values()) {
          if (account.standing === 'in flight') account.standing = 'settling'
          if (account.standing === 'waiting') account.orphan = true
        }
        return
      default:
        return
    }
  }

  #decide(decision: Decision): void {
    const account = this.#calls.get(decision.callId)
    if (account === undefined && decision.verdict === 'reject' && this.#ended.has(decision.callId)) return
    if (account === undefined)
      throw new InvariantBroken('I3', `decision about ${decision.callId}, which never came`)
    switch (decision.verdict) {
      case 'admit':
      case 'release':
        return this.#grant(account, decision)
      case 'defer':
        if (account.standing === 'settling') account.returns += 1
        account.standing = 'waiting'
        account.orphan = decision.reason === 'recovered'
        return
      case 'reject':
        if (decision.reason === 'already-settled') return
        account.standing = 'ended'
        return
      case 'expire':
        hold(account.standing !== 'ended', 'I3', () => `${decision.callId} expired after its end`)
        account.standing = 'ended'
        return
      case 'cancel':
        hold(account.lane === 'auxiliary', 'I3', () => `primary ${decision.callId} was preempted`)
        return
    }
  }

  #grant(account: Account, decision: Decision): void {
    const { callId, reason, state } = decision
    hold(
      account.standing === 'waiting' || account.standing === 'settling',
      'I4',
      () => `${callId} granted twice`,
    )
    if (account.standing === 'settling') account.returns += 1
    account.grants += 1
    hold(account.grants <= account.returns + 1, 'I4', () => `${callId} granted ${account.grants} times`)
    if (account.lane === 'auxiliary') this.#grantAuxiliary(account, decision)
    else
      hold(
        state.startsWith('quietRamp') || gateExceptions.has(reason),
        'I1',
        () => `primary ${callId} in ${state}`,
      )
    account.standing = 'in flight'
    account.sent = false
    account.borrowed = reason === 'nested'
    if (account.borrowed) return
    const places = this.#count((one) => one.standing === 'in flight' && !one.borrowed)
    hold(
      places <= this.#policy.capacity,
      'I2',
      () => `${places} in flight, capacity ${this.#policy.capacity}`,
    )
  }

  #grantAuxiliary(account: Account, { callId, reason, state }: Decision): void {
    if (gateExceptions.has(reason)) {
      this.exceptions.set(reason, (this.exceptions.get(reason) ?? 0) + 1)
      account.promoted = true
      return
    }
    const closed = state === 'primaryPending' || state.startsWith('quietRamp')
    hold(!closed, 'I1', () => `auxiliary ${callId} granted (${reason}) in ${state}`)
    const primaries = this.#count((one) => one.lane === 'primary' && one.standing === 'waiting')
    hold(
      primaries === 0 || reason === 'fairness',
      'I1',
      () => `${callId} granted (${reason}) past ${primaries} waiting primaries`,
    )
    const { capacity } = this.#policy
    const auxiliaries = this.#count(
      (one) => one.lane === 'auxiliary' && one.standing === 'in flight' && !one.promoted,
    )
    const places = capacity - reserveOf(this.#policy)
    hold(auxiliaries < places, 'I2', () => `${auxiliaries} auxiliaries in flight, ${places} places`)
    for (const [id, other] of this.#calls) {
      const ahead =
        other.lane === 'auxiliary' && other.principal === account.principal && other.order < account.order
      hold(
        !(ahead && other.standing === 'waiting' && !other.promoted && !other.orphan),
        'I4',
        () => `${callId} went before ${id} of the same principal`,
      )
    }
  }

  #count(matches: (account: Account) => boolean): number {
    let total = 0
    for (const account of this.#calls.values()) if (matches(account)) total += 1
    return total
  }

  /** The core's own books say the same as the account kept here. */
  #agree(after: ScopeContext): void {
    for (const [id, account] of this.#calls) {
      if (account.ends === 0 && account.standing !== 'in flight' && !HashMap.has(after.waiting, id)) {
        account.standing = 'ended'
        account.ends = 1
        this.#calls.delete(id)
        this.#ended.set(id, account)
        hold(!HashMap.has(after.inFlight, id), 'I3', () => `${id} runs on after its end`)
      } else if (account.standing === 'in flight') {
        hold(HashMap.has(after.inFlight, id), 'I3', () => `${id} is in flight by decision, not by the books`)
      } else if (account.standing === 'waiting') {
        hold(HashMap.has(after.waiting, id), 'I3', () => `${id} waits by decision, not by the books`)
      }
    }
    const { counts } = after
    const waiting = this.#count((one) => one.standing === 'waiting')
    const flying = this.#count((one) => one.standing === 'in flight')
    hold(
      counts.primaryWaiting + counts.auxiliaryWaiting === waiting,
      'I3',
      () => `${waiting} wait, counted otherwise`,
    )
    hold(
      counts.primaryInFlight + counts.auxiliaryInFlight === flying,
      'I3',
      () => `${flying} in flight, counted otherwise`,
    )
  }
}
