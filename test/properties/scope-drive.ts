/** Drives a scope actor with made-up moves, each a plain value that prints and replays. */
import { HashMap } from 'effect'
import fc from 'fast-check'
import { createActor } from 'xstate'
import {
  type Call,
  contractPolicy,
  type Decision,
  type EvidenceKind,
  type OwnerStance,
  type Policy,
  type PolicyInput,
  parsePolicy,
  providerScope,
  type ScopeContext,
  type ScopeEvent,
  wakeAt,
} from '../../machines/index.ts'
import { Witness } from '../../src/simulation/witness.ts'

export type Move =
  | {
      readonly do: 'submit'
      readonly call: Partial<Call>
      /** Default null. */
      readonly turnId?: string | null
      readonly deadlineMs: number | null
      readonly nestIn: number | null
      readonly needs: number | null
    }
  | {
      readonly do: 'settle'
      readonly pick: number
      readonly outcome: 'completed' | 'failed' | 'cancelled'
      readonly owner: OwnerStance | null
    }
  | {
      readonly do: 'refuse'
      readonly pick: number
      readonly kind: EvidenceKind
      readonly retryAfterMs: number | null
      readonly retryable: boolean
      readonly owner: OwnerStance | null
    }
  | { readonly do: 'dispatch' | 'accept' | 'withdraw' | 'promote' | 'resubmit'; readonly pick: number }
  | { readonly do: 'pass'; readonly ms: number }
  | { readonly do: 'wake' }
  | { readonly do: 'recover' }
  | { readonly do: 'release' }
  | { readonly do: 'foreground'; readonly active: boolean }
  | { readonly do: 'turn'; readonly id: number; readonly on: boolean; readonly hold: boolean }
  | { readonly do: 'capacity'; readonly capacity: number; readonly qos: PolicyInput['qos'] | 'as it is' }

const pick = fc.nat({ max: 30 })

const owner = fc.constantFrom<OwnerStance | null>(null, null, 'sends', 'away', 'left')

const submit = fc.record({
  do: fc.constant('submit' as const),
  call: fc.oneof(
    {
      weight: 3,
      arbitrary: fc.record({
        lane: fc.constant('auxiliary' as const),
        priorityClass: fc.constant('background_ingestion' as const),
        principal: fc.constantFrom('a', 'b', 'c'),
        inputTokens: fc.integer({ min: 0, max: 90_000 }),
      }),
    },
    {
      weight: 1,
      arbitrary: fc.record({
        lane: fc.constant('primary' as const),
        priorityClass: fc.constantFrom(
          'interactive' as const,
          'orchestration' as const,
          'hydration' as const,
        ),
        principal: fc.constantFrom('a', 'b'),
        inputTokens: fc.integer({ min: 0, max: 200_000 }),
      }),
    },
  ),
  turnId: fc.option(fc.constantFrom('t0', 't1', 't2', 't3', 't4'), { freq: 2 }),
  deadlineMs: fc.option(fc.integer({ min: 1, max: 300_000 }), { freq: 8 }),
  nestIn: fc.option(pick, { freq: 10 }),
  needs: fc.option(pick, { freq: 10 }),
})

export const anyMove: fc.Arbitrary<Move> = fc.oneof(
  { weight: 8, arbitrary: submit },
  {
    weight: 6,
    arbitrary: fc.record({
      do: fc.constant('settle' as const),
      pick,
      outcome: fc.constantFrom(
        'completed' as const,
        'completed' as const,
        'failed' as const,
        'cancelled' as const,
      ),
      owner,
    }),
  },
  {
    weight: 3,
    arbitrary: fc.record({
      do: fc.constant('refuse' as const),
      pick,
      kind: fc.constantFrom<EvidenceKind>(
        'acceleration',
        'overloaded',
        'concurrency',
        'quota-exhausted',
        'requests-per-minute',
      ),
      retryAfterMs: fc.option(fc.integer({ min: 0, max: 90_000 })),
      retryable: fc.boolean(),
      owner,
    }),
  },
  {
    weight: 4,
    arbitrary: fc.record({
      do: fc.constantFrom(
        'dispatch' as const,
        'accept' as const,
        'withdraw' as const,
        'promote' as const,
        'resubmit' as const,
      ),
      pick,
    }),
  },
  {
    weight: 4,
    arbitrary: fc.record({ do: fc.constant('pass' as const), ms: fc.integer({ min: 1, max: 150_000 }) }),
  },
  { weight: 3, arbitrary: fc.record({ do: fc.constant('wake' as const) }) },
  { weight: 1, arbitrary: fc.constantFrom({ do: 'recover' as const }, { do: 'release' as const }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('foreground' as const), active: fc.boolean() }) },
  {
    weight: 1,
    arbitrary: fc.record({
      do: fc.constant('turn' as const),
      id: fc.nat({ max: 2 }),
      on: fc.boolean(),
      hold: fc.boolean(),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      do: fc.constant('capacity' as const),
      capacity: fc.integer({ min: 1, max: 6 }),
      qos: fc.constantFrom('as it is' as const, null, {}),
    }),
  },
)

export const anyPolicy: fc.Arbitrary<PolicyInput> = fc.record(
  {
    capacity: fc.integer({ min: 1, max: 6 }),
    inFlight: fc.constantFrom('settle' as const, 'cancel' as const, 'tolerate' as const),
    afterPatience: fc.constantFrom('proceed' as const, 'cancel' as const),
    hold: fc.constantFrom('whileWaiting' as const, 'untilAccepted' as const, 'untilSettled' as const),
    toleratedInFlight: fc.integer({ min: 0, max: 2 }),
    quantumTokens: fc.integer({ min: 1, max: 100_000 }),
    drainIntervalMs: fc.constantFrom(0, 1_000, 20_000),
    maxDeferralMs: fc.constantFrom(100, 10_000, 120_000),
    maxAttempts: fc.integer({ min: 1, max: 4 }),
    favor: fc.constantFrom('begunInPrincipal' as const, 'begun' as const, 'arrival' as const),
    squeezeMs: fc.constantFrom(0, 30_000),
    lingerMs: fc.constantFrom(0, 5_000),
    settledRetention: fc.constantFrom(3, 4_096),
    principalQuota: fc.option(fc.integer({ min: 1, max: 3 })),
    qos: fc.constantFrom(null, null, {}, { principalCalls: 4, callsPerSecond: 0.1, bandPlaces: 0 }),
    unknownAfterRestart: fc.constantFrom('report' as const, 'dispatchAgain' as const),
    limits: fc.record({
      inputTokensPerMinute: fc.constantFrom(null, 100_000, 250_000),
      requestsPerMinute: fc.constantFrom(null, 5),
    }),
  },
  { requiredKeys: [] },
)

type RareMove = Exclude<
  Move,
  {
    do:
      | 'submit'
      | 'settle'
      | 'refuse'
      | 'dispatch'
      | 'accept'
      | 'withdraw'
      | 'promote'
      | 'resubmit'
      | 'pass'
      | 'wake'
  }
>

type Watcher = (event: ScopeEvent, decisions: ReadonlyArray<Decision>, after: ScopeContext) => void

/** One scope under test, with everything that it was told and decided. */
export class Drive {
  readonly events: ScopeEvent[] = []
  readonly decisions: Decision[] = []
  readonly witness: Witness
  at = 1_000_000
  #ids = 0
  #step: Decision[] = []
  actor
  #watcher: Watcher = () => {}

  constructor(policy: PolicyInput) {
    const parsed: Policy = parsePolicy(policy, contractPolicy)
    this.witness = new Witness(parsed)
    this.actor = this.#started(undefined)
    this.tell({ type: 'policy.changed', at: this.at, policy: parsed })
  }

  #started(snapshot: unknown) {
    const input = { scope: 'test' }
    const actor = createActor(
      providerScope,
      snapshot === undefined ? { input } : { input, snapshot: snapshot as never },
    )
    actor.on('decided', ({ decisions }) => this.#step.push(...decisions))
    actor.subscribe({ error: () => {} })
    return actor.start()
  }

  /** Has another see every step. */
  watch(watcher: Watcher): void {
    this.#watcher = watcher
  }

  /** Its process ends, and another goes on from what it wrote. */
  restart(): void {
    this.actor = this.#started(JSON.parse(JSON.stringify(this.actor.getPersistedSnapshot())))
  }

  get context(): ScopeContext {
    return this.actor.getSnapshot().context.scope
  }

  tell(event: ScopeEvent): ReadonlyArray<Decision> {
    this.#step = []
    this.events.push(event)
    this.actor.send(event)
    const snapshot = this.actor.getSnapshot()
    if (snapshot.status === 'error') throw snapshot.error
    this.decisions.push(...this.#step)
    this.witness.observe(event, this.#step, this.context)
    this.#watcher(event, this.#step, this.context)
    return this.#step
  }

  move(move: Move): void {
    const { at } = this
    const flying = [...HashMap.values(this.context.inFlight)].sort((a, b) => a.seq - b.seq)
    const waiting = [...HashMap.values(this.context.waiting)].sort((a, b) => a.seq - b.seq)
    const of = <T>(list: T[], index: number): T | undefined => list[index % Math.max(1, list.length)]
    switch (move.do) {
      case 'submit':
        return this.#submit(
          move,
          of(flying, move.nestIn ?? 0)?.call.id,
          of([...waiting, ...flying], move.needs ?? 0)?.call,
        )
      case 'settle':
      case 'refuse': {
        const callId = of(flying, move.pick)?.call.id ?? 'nobody'
        const { kind, retryAfterMs, retryable } =
          move.do === 'refuse' ? move : { kind: null, retryAfterMs: null, retryable: true }
        const stance = move.owner === null ? {} : { owner: move.owner }
        if (move.do === 'settle')
          this.tell({ type: 'call.settled', at, callId, outcome: move.outcome, ...stance })
        else if (kind !== null)
          this.tell({
            type: 'call.settled',
            at,
            callId,
            outcome: 'throttled',
            evidence: { kind, scope: 'model', retryAfterMs, retryable, facts: {} },
            ...stance,
          })
        return
      }
      case 'dispatch':
      case 'accept': {
        const callId = of(flying, move.pick)?.call.id ?? 'nobody'
        this.tell({ type: move.do === 'dispatch' ? 'call.dispatched' : 'call.accepted', at, callId })
        return
      }
      case 'withdraw':
      case 'promote': {
        const callId = of([...waiting, ...flying], move.pick)?.call.id ?? 'nobody'
        this.tell({ type: move.do === 'withdraw' ? 'call.withdrawn' : 'call.promoted', at, callId })
        return
      }
      case 'resubmit': {
        const call = of([...waiting, ...flying], move.pick)?.call
        if (call !== undefined) this.tell({ type: 'call.submitted', at, call })
        return
      }
      case 'pass':
        this.at += move.ms
        return
      case 'wake':
        this.wake()
        return
      default:
        return this.#rare(move)
    }
  }

  #rare(move: RareMove): void {
    const { at } = this
    if (move.do === 'recover') this.tell({ type: 'host.recovered', at })
    else if (move.do === 'release') this.tell({ type: 'wait.released', at })
    else if (move.do === 'foreground') this.tell({ type: 'foreground.changed', at, active: move.active })
    else if (move.do === 'capacity') {
      this.tell({
        type: 'policy.changed',
        at,
        policy: parsePolicy(
          {
            ...this.context.policy,
            capacity: move.capacity,
            reserve: 'auto',
            ...(move.qos === 'as it is' ? {} : { qos: move.qos ?? null }),
          },
          contractPolicy,
        ),
      })
    } else if (move.on)
      this.tell({
        type: 'turn.began',
        at,
        turnId: `t${move.id}`,
        betweenRounds: move.hold ? 'hold' : 'yield',
      })
    else this.tell({ type: 'turn.ended', at, turnId: `t${move.id}` })
  }

  #submit(
    move: Extract<Move, { do: 'submit' }>,
    parentId: string | undefined,
    needed: Call | undefined,
  ): void {
    const call: Call = {
      id: `c${this.#ids++}`,
      turnId: move.turnId ?? null,
      lane: 'auxiliary',
      priorityClass: 'background_ingestion',
      principal: 'a',
      inputTokens: 0,
      outputTokens: 0,
      deadlineAt: move.deadlineMs === null ? null : this.at + move.deadlineMs,
      dependsOn: move.needs !== null && needed?.lane === 'auxiliary' ? [needed.id] : [],
      parentId: move.nestIn === null ? null : (parentId ?? null),
      ...move.call,
    }
    this.tell({ type: 'call.submitted', at: this.at, call })
  }

  /** Moves to the next wake-up and tells the time. False when nothing waits for time. */
  wake(): boolean {
    const next = wakeAt(this.context)
    if (next === null) return false
    this.at = Math.max(this.at, next)
    this.tell({ type: 'clock.woke', at: this.at })
    return true
  }

  /** Answers everything in flight, comes back for every orphan and lets time pass until nothing lives. */
  drain(): void {
    this.tell({ type: 'foreground.changed', at: this.at, active: false })
    for (let id = 0; id <= 2; id += 1) this.tell({ type: 'turn.ended', at: this.at, turnId: `t${id}` })
    for (let round = 0; round < 2_000; round += 1) {
      const flying = [...HashMap.values(this.context.inFlight)]
      for (const { call } of flying) {
        this.tell({ type: 'call.dispatched', at: this.at, callId: call.id })
        this.tell({ type: 'call.settled', at: this.at, callId: call.id, outcome: 'completed' })
      }
      if (HashMap.isEmpty(this.context.waiting) && HashMap.isEmpty(this.context.inFlight)) return
      if (flying.length === 0 && !this.wake()) throw new Error('calls wait, and nothing will ever wake them')
    }
    throw new Error('calls wait for ever')
  }
}
