/**
 * What the limits of a policy leave, by a model of its own: buckets that fill up within a minute, and calls that take
 * from them as they are let in or as they end, and give back what the provider has not taken.
 */
import type { Call, Decision, Policy, ScopeEvent } from '../../machines/index.ts'

const minuteMs = 60_000

interface Bucket {
  limit: number
  level: number
  atMs: number
}

interface Sent {
  readonly call: Call
  stage: 'admitted' | 'dispatched' | 'accepted'
  /** Input tokens that were taken for it so far. */
  taken: number
}

type Kind = 'requests' | 'tokens'

export class BudgetModel {
  #policy: Policy
  readonly #buckets = new Map<Kind, Bucket>()
  readonly #calls = new Map<string, Call>()
  readonly #sent = new Map<string, Sent>()

  constructor(policy: Policy, atMs: number) {
    this.#policy = policy
    this.#declare(policy, atMs)
  }

  /** Before the decisions of an event are: what the event itself gives back or takes. */
  observe(event: ScopeEvent): void {
    const { at } = event
    if (event.type === 'policy.changed') this.#declare(event.policy, at)
    if (event.type === 'call.submitted' && !this.#sent.has(event.call.id))
      this.#calls.set(event.call.id, event.call)
    if (event.type === 'host.recovered') {
      for (const [id, { stage }] of this.#sent)
        if (stage === 'admitted') this.#end(id, 0, 0, at)
        else this.#sent.delete(id)
    }
    const sent = 'callId' in event ? this.#sent.get(event.callId) : undefined
    if (sent === undefined) return
    const { id } = sent.call
    if (event.type === 'call.dispatched' && sent.stage === 'admitted') sent.stage = 'dispatched'
    if (event.type === 'call.accepted') sent.stage = 'accepted'
    if (event.type === 'call.withdrawn' && sent.stage === 'admitted') this.#end(id, 0, 0, at)
    if (event.type === 'call.settled') this.#settle(sent, event.outcome, at)
  }

  /** A decision of that event. */
  decided({ callId, verdict, at, ...decision }: Decision): void {
    if (verdict === 'expire') this.#sent.delete(callId)
    if (verdict !== 'admit' && verdict !== 'release') return
    const call = this.#calls.get(callId) as Call
    const taken = this.#policy.charges.at === 'completion' ? 0 : call.inputTokens
    this.#sent.set(callId, { call, stage: 'dispatched' in decision ? 'dispatched' : 'admitted', taken })
    this.#take('requests', 1, at)
    this.#take('tokens', taken, at)
  }

  /** When the limits hold what the call needs, epoch milliseconds; at most `atMs` when they do now. */
  fitsAtMs({ inputTokens }: Call, atMs: number): number {
    let fits = atMs
    for (const [kind, needed] of [
      ['requests', 1],
      ['tokens', inputTokens],
    ] as const) {
      const bucket = this.#filled(kind, atMs)
      if (bucket === undefined) continue
      const missing = Math.min(needed, bucket.limit) - bucket.level
      if (missing > 0) fits = Math.max(fits, atMs + Math.ceil((missing * minuteMs) / bucket.limit))
    }
    return fits
  }

  #settle({ call, stage, taken }: Sent, outcome: string, at: number): void {
    const { charges } = this.#policy
    const failed = outcome === 'failed' || (outcome === 'cancelled' && stage !== 'admitted')
    if (stage === 'accepted' || outcome === 'completed') this.#end(call.id, 1, call.inputTokens, at)
    else if (!failed || !charges.failures) this.#end(call.id, 0, 0, at)
    else this.#end(call.id, 1, charges.at === 'completion' ? call.inputTokens : taken, at)
  }

  /** What it has taken in the end. */
  #end(callId: string, requests: number, tokens: number, at: number): void {
    const { taken } = this.#sent.get(callId) as Sent
    this.#sent.delete(callId)
    this.#take('requests', requests - 1, at)
    this.#take('tokens', tokens - taken, at)
  }

  #declare(policy: Policy, atMs: number): void {
    this.#policy = policy
    const { requestsPerMinute, inputTokensPerMinute } = policy.limits
    for (const [kind, limit] of [
      ['requests', requestsPerMinute],
      ['tokens', inputTokensPerMinute],
    ] as const) {
      const before = this.#filled(kind, atMs)
      if (limit === null) this.#buckets.delete(kind)
      else this.#buckets.set(kind, { limit, level: limit - (before ? before.limit - before.level : 0), atMs })
    }
  }

  #take(kind: Kind, amount: number, atMs: number): void {
    const bucket = this.#filled(kind, atMs)
    if (bucket !== undefined) bucket.level = Math.min(bucket.limit, bucket.level - amount)
  }

  #filled(kind: Kind, atMs: number): Bucket | undefined {
    const bucket = this.#buckets.get(kind)
    if (bucket === undefined) return undefined
    const { limit, level } = bucket
    bucket.level = Math.min(limit, level + ((atMs - bucket.atMs) * limit) / minuteMs)
    bucket.atMs = atMs
    return bucket
  }
}
