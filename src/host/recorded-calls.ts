/** Where the calls of a scope stand by its record alone: what was decided is true, whatever this version would decide. */
import { HashMap } from 'effect'
import type { Ending } from '../../machines/collections/ended-log.ts'
import type {
  Decision,
  GrantReason,
  InFlight,
  ScopeContext,
  ScopeEvent,
  Waiting,
} from '../../machines/index.ts'
import { takenAtAdmission } from '../../machines/limits/charges.ts'
import type { Standings } from '../../machines/snapshot/standing.ts'

/** The record grants, ends or returns a call that by the same record is not there: it cannot be followed. */
export class RecordContradicts extends Error {
  readonly _tag = 'RecordContradicts'
  constructor({ verdict, callId }: Decision) {
    super(`its record says ${verdict} of call ${callId}, which by the same record is not there`)
    this.name = 'RecordContradicts'
  }
}

/** Reasons of a refusal that say that the call had come before. */
const hadEnded: ReadonlySet<Decision['reason']> = new Set(['already-settled', 'outcome-unknown'])

export class RecordedCalls implements Standings {
  readonly waiting: Map<string, Waiting>
  readonly inFlight: Map<string, InFlight>
  readonly ended = new Map<string, Ending>()
  nextSeq: number

  /** Begins with the calls of `context`, up to which record and version agree. */
  constructor({ waiting, inFlight, nextSeq }: ScopeContext) {
    this.waiting = new Map(HashMap.toEntries(waiting))
    this.inFlight = new Map(HashMap.toEntries(inFlight))
    this.nextSeq = nextSeq
  }

  /** Takes the event and its recorded decisions. Throws `RecordContradicts`. */
  take(event: ScopeEvent, decisions: ReadonlyArray<Decision>, { policy, heldMs }: ScopeContext): void {
    this.#apply(event, decisions, policy.unclaimedExpiryMs, heldMs)
    // A refused submission has been taken above.
    const refused = event.type === 'call.submitted' ? event.call.id : null
    for (const decision of decisions) {
      if (decision.verdict === 'reject' && decision.callId === refused) continue
      this.#decide(decision, policy)
    }
    if (event.type === 'host.recovered') this.#recover(event.at, policy.unclaimedExpiryMs)
  }

  #apply(
    event: ScopeEvent,
    decisions: ReadonlyArray<Decision>,
    unclaimedMs: number,
    heldFromMs: number,
  ): void {
    switch (event.type) {
      case 'call.submitted':
        return this.#submit(event, decisions, heldFromMs)
      case 'call.withdrawn': {
        if (this.inFlight.get(event.callId)?.stage === 'admitted' || this.waiting.has(event.callId))
          this.#end(event.callId, 'withdrawn')
        return
      }
      case 'call.dispatched':
      case 'call.accepted': {
        const stage = event.type === 'call.accepted' ? 'accepted' : 'dispatched'
        const flight = this.inFlight.get(event.callId)
        if (flight !== undefined && flight.stage !== 'accepted')
          this.inFlight.set(event.callId, { ...flight, stage })
        return
      }
      case 'call.settled':
        return this.#settle(event, decisions, unclaimedMs)
      case 'call.promoted':
        return this.#change(event.callId, { urgent: true })
      case 'call.claimed':
        return this.#change(event.callId, { unclaimedUntilMs: null })
      case 'host.closing': {
        for (const id of event.unused) {
          const flight = this.inFlight.get(id)
          if (flight?.stage === 'dispatched') this.inFlight.set(id, { ...flight, stage: 'admitted' })
        }
        for (const id of this.waiting.keys()) this.#change(id, { dispatchAtOnce: false })
        return
      }
    }
  }

  #change(id: string, change: Partial<Waiting>): void {
    const waiting = this.waiting.get(id)
    if (waiting !== undefined) this.waiting.set(id, { ...waiting, ...change })
  }

  #submit(
    { call, at, dispatchAtOnce = false }: Extract<ScopeEvent, { type: 'call.submitted' }>,
    decisions: ReadonlyArray<Decision>,
    heldFromMs: number,
  ): void {
    const waiting = this.waiting.get(call.id)
    if (waiting !== undefined) {
      const { deadlineAt } = call
      const asked = { ...waiting.call, deadlineAt }
      return this.#change(call.id, { call: asked, dispatchAtOnce, unclaimedUntilMs: null })
    }
    if (this.inFlight.has(call.id)) return
    const refusal = decisions.find(({ callId, verdict }) => callId === call.id && verdict === 'reject')
    if (refusal !== undefined) {
      // A call that was turned away as it came may come again.
      this.#end(call.id, hadEnded.has(refusal.reason) ? (this.ended.get(call.id) ?? 'rejected') : 'withdrawn')
      return
    }
    this.ended.delete(call.id)
    this.waiting.set(call.id, {
      call,
      seq: this.nextSeq,
      submittedAt: at,
      attempts: 0,
      triedAtMs: 0,
      sizeRefusals: 0,
      reason: 'capacity-full',
      urgent: false,
      inheritedRank: null,
      waitsFor: [],
      unclaimedUntilMs: null,
      dispatchAtOnce,
      heldFromMs,
    })
    this.nextSeq += 1
  }

  #settle(
    { callId, outcome, late, owner, at }: Extract<ScopeEvent, { type: 'call.settled' }>,
    decisions: ReadonlyArray<Decision>,
    unclaimedMs: number,
  ): void {
    const flight = this.inFlight.get(callId)
    if (flight === undefined || late === true) return
    const back = decisions.find((decision) => decision.callId === callId)
    const isBack = back !== undefined && back.verdict !== 'reject'
    if (!isBack) return this.#end(callId, outcome)
    this.#return(flight, {
      unclaimedUntilMs: owner === 'away' ? at + unclaimedMs : null,
      dispatchAtOnce: owner === 'sends',
    })
  }

  #return(flight: InFlight, change: Partial<Waiting>): void {
    const { call, seq, submittedAt, attempts, sizeRefusals, grant, heldFromMs, grantedAt } = flight
    this.inFlight.delete(call.id)
    this.waiting.set(call.id, {
      call,
      seq,
      submittedAt,
      attempts,
      triedAtMs: grantedAt,
      sizeRefusals,
      reason: 'refused-by-provider',
      urgent: grant === 'dependency',
      inheritedRank: null,
      waitsFor: [],
      unclaimedUntilMs: null,
      dispatchAtOnce: false,
      heldFromMs,
      ...change,
    })
  }

  #end(id: string, ending: Ending): void {
    this.waiting.delete(id)
    this.inFlight.delete(id)
    this.ended.delete(id)
    this.ended.set(id, ending)
  }

  #decide(decision: Decision, policy: ScopeContext['policy']): void {
    const { callId, verdict, reason } = decision
    const waiting = this.waiting.get(callId)
    const flight = this.inFlight.get(callId)
    if ((verdict === 'admit' || verdict === 'release') && waiting !== undefined)
      return this.#grant(waiting, decision, policy)
    if (verdict === 'defer' && waiting !== undefined) return
    if (verdict === 'defer' && flight !== undefined) return this.#return(flight, {})
    if (verdict === 'cancel' && flight !== undefined) {
      this.inFlight.set(callId, { ...flight, preempted: true })
      return
    }
    if (verdict === 'expire' && (waiting ?? flight) !== undefined) {
      const inFlight = reason === 'abandoned' ? 'abandoned' : 'timedOut'
      return this.#end(callId, flight === undefined ? 'expired' : inFlight)
    }
    if (verdict === 'reject') {
      if (reason === 'outcome-unknown') this.#end(callId, 'unknown')
      else if ((waiting ?? flight) !== undefined) this.#end(callId, 'rejected')
      return
    }
    throw new RecordContradicts(decision)
  }

  #grant(waiting: Waiting, decision: Decision, policy: ScopeContext['policy']): void {
    const { call, seq, submittedAt, attempts, sizeRefusals, dispatchAtOnce, heldFromMs } = waiting
    this.waiting.delete(call.id)
    this.inFlight.set(call.id, {
      call,
      seq,
      submittedAt,
      attempts: attempts + 1,
      sizeRefusals,
      grantedAt: decision.at,
      // It may have been sent when either says so.
      stage: decision.dispatched === true || dispatchAtOnce ? 'dispatched' : 'admitted',
      grant: decision.reason as GrantReason,
      preempted: false,
      borrowed: decision.reason === 'nested',
      paced: false,
      taken: takenAtAdmission(policy.charges, call),
      heldFromMs,
      turn: null,
    })
  }

  /** Calls in flight that the record does not end were not sent: they wait again. Nobody has claimed what waits. */
  #recover(atMs: number, unclaimedMs: number): void {
    for (const flight of [...this.inFlight.values()]) this.#return(flight, { reason: 'recovered' })
    for (const [id, { unclaimedUntilMs }] of this.waiting)
      if (unclaimedUntilMs === null) this.#change(id, { unclaimedUntilMs: atMs + unclaimedMs })
  }
}
