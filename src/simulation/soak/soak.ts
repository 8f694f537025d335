/**
 * Deterministic simulation: the real host, its actors, permits and fibers, on virtual time, over a disk that
 * loses writes and a provider that refuses. One seed gives one history; every step is checked.
 */

import { HashMap } from 'effect'
import type { ScopeContext } from '../../../machines/index.ts'
import { LaneHost, type LaneScope } from '../../host/host.ts'
import { kernelOf } from '../../host/internal.ts'
import { Kernel } from '../../host/kernel.ts'
import { scopeName } from '../../host/scope-name.ts'
import type { ScopeRunner } from '../../host/scope-runner.ts'
import { InvariantBroken } from '../witness.ts'
import { Client } from './client.ts'
import type { Coverage } from './coverage.ts'
import { type Draw, drawFrom } from './draw.ts'
import { Ledger } from './ledger.ts'
import { Life, Machine, startMs } from './machine.ts'
import { type FaultPlan, faultyMs, type Plan, type ScopePlan } from './plan.ts'
import { Upstream } from './upstream.ts'

export interface SoakResult {
  readonly seed: number
  /** Equal for equal seeds: entries, dispatches, crashes and outcomes in their order. */
  readonly hash: string
  readonly entries: number
  readonly restarts: number
  readonly dispatches: number
  readonly coverage: Coverage
  /** Records by scope, for comparing a run with another. */
  readonly records: ReadonlyMap<string, ReadonlyArray<string>>
}

/** Lets every promise run as far as it can without time passing. */
const turn = async (): Promise<void> => {
  for (let turns = 0; turns < 2; turns += 1) await new Promise<void>((resolve) => setImmediate(resolve))
}

/** The longest time from the last fault to the end of all calls, ms. */
const patienceMs = 2 * 86_400_000
/** Share of steps at which the whole snapshots are compared. */
const snapshotOdds = 0.02

interface Part {
  readonly plan: ScopePlan
  readonly name: string
  readonly upstream: Upstream
  readonly clients: ReadonlyArray<Client>
}

export class Soak {
  readonly #plan: Plan
  readonly #ledger: Ledger
  readonly #machine: Machine
  readonly #draw: Draw
  readonly #parts: ReadonlyArray<Part>
  #life: Life
  #host: LaneHost | null = null
  #restarts = 0

  /** With `only`, the other scopes of the plan are left out. */
  constructor(plan: Plan, only: number | null = null) {
    this.#plan = plan
    const scopes = plan.scopes.filter((_, index) => only === null || index === only)
    const nameOf = ({ key }: ScopePlan) => scopeName(key)
    this.#ledger = new Ledger(new Set(scopes.filter(({ calm }) => calm).map(nameOf)))
    this.#machine = new Machine(this.#ledger, plan)
    this.#draw = drawFrom(plan.seed, 'checks')
    this.#life = new Life(() => this.#died())
    this.#parts = scopes.map((scope) => this.#partOf(scope, nameOf(scope)))
    for (const fault of plan.faults) {
      this.#machine.timeline.at(startMs + fault.atMs, () => this.#befall(fault))
    }
    for (const { name, plan: scope } of this.#parts)
      if (!scope.calm) this.#operate(name, drawFrom(plan.seed, name))
  }

  /** Runs until all calls have ended. Rejects with `InvariantBroken`. */
  async run(): Promise<SoakResult> {
    this.#boot()
    await turn()
    while (!this.#isOver()) {
      this.#check()
      if (!this.#machine.timeline.step()) {
        if (this.#isFinished()) break
        throw new InvariantBroken('I3', `nothing will ever happen: ${this.#open()}`)
      }
      await turn()
    }
    this.#check()
    this.#ledger.agreesWith(this.#runners())
    this.#ledger.finish()
    const dispatches = this.#parts.map(({ upstream }) => upstream.provider.totals())
    return {
      seed: this.#plan.seed,
      hash: this.#ledger.hash,
      entries: this.#ledger.written,
      restarts: this.#restarts,
      dispatches: dispatches.reduce((sum, { accepted, refused }) => sum + accepted + refused, 0),
      coverage: this.#ledger.coverage.met,
      records: new Map(this.#parts.map(({ name }) => [name, this.#ledger.recordsOf(name)])),
    }
  }

  #partOf(plan: ScopePlan, name: string): Part {
    const { seed } = this.#plan
    const [machine, ledger] = [this.#machine, this.#ledger]
    const upstream = new Upstream(seed, plan, name, machine, ledger)
    let running: { scope: LaneScope; life: Life } | null = null
    const scope = (): { scope: LaneScope; life: Life } | null => {
      if (this.#host === null) return null
      if (running?.life !== this.#life) {
        running = { scope: this.#host.scope(plan.key, plan.policy), life: this.#life }
      }
      return running
    }
    const ports = { machine, ledger, upstream, scope, pending: new Set<string>() }
    return {
      plan,
      name,
      upstream,
      clients: plan.clients.map((client) => new Client(seed, name, client, ports)),
    }
  }

  #boot(): void {
    const life = new Life(() => this.#died())
    this.#life = life
    const journal = this.#machine.openJournal(life)
    const clock = this.#machine.clockOf(life)
    Kernel.open({ journal, journalPath: 'simulated', clock }).then(
      (kernel) => {
        if (!life.alive) return
        kernel.observe((observation) =>
          this.#ledger.keepsSecrets('an observation', JSON.stringify(observation)),
        )
        this.#host = new LaneHost(kernel)
        this.#ledger.note(() => {
          this.#ledger.agreesWith(kernel.runners.values())
          for (const { context } of kernel.runners.values()) ownerless(context)
          for (const { clients } of this.#parts) for (const client of clients) client.resume()
        })
      },
      (error: unknown) => {
        if (life.alive) this.#ledger.broke(error)
      },
    )
  }

  /** The process has died. The machine stays, and starts another process after a while. */
  #died(orderly = false): void {
    const draw = drawFrom(this.#plan.seed, `death ${this.#restarts}`)
    // The number of entries that survive depends on all scopes, so isolated scopes lose all that were not
    // synced.
    const extra = orderly || this.#plan.isolated ? 0 : draw.of([0, 0, 0, 1, 2, 5])
    this.#life.alive = false
    this.#host = null
    for (const { upstream } of this.#parts) upstream.lost(this.#life)
    this.#restarts += 1
    // The dying code finishes its step before its disk is read.
    this.#machine.after(0, () => this.#machine.crash(extra))
    this.#machine.after(draw.of([1, 50, 5_000]), () => this.#boot())
  }

  #befall(fault: FaultPlan): void {
    const life = this.#life
    this.#ledger.coverage.note(`fault ${fault.kind}`)
    if (fault.kind === 'jump') return this.#machine.jump(fault.byMs)
    if (fault.kind === 'slow-sync') return this.#machine.slowDown(fault.forMs)
    if (!life.alive) return
    switch (fault.kind) {
      case 'kill':
        if (fault.within === 'nothing') return this.#died()
        life.dyingIn = { within: fault.within, left: fault.nth }
        return
      case 'eio':
        this.#machine.failDisk()
        this.#machine.after(2_000, () => {
          if (life.alive) this.#died()
        })
        return
      case 'close': {
        const host = this.#host
        if (host === null) return
        this.#machine.after(fault.graceMs + 500, () => {
          if (life.alive) this.#died(true)
        })
        host.close({ graceMs: fault.graceMs }).catch(() => {})
        return
      }
    }
  }

  /** An operator acts at random times. */
  #operate(name: string, draw: Draw): void {
    this.#machine.after(draw.whole(1_000, 40_000), () => {
      if (this.#machine.timeline.now() > startMs + faultyMs) {
        this.#kernel()?.scope(name).tell({ type: 'foreground.changed', active: false })
        return
      }
      this.#operate(name, draw)
      const [what, pick, active] = [draw.whole(0, 4), draw.chance(), draw.odds(0.3)]
      const runner = this.#kernel()?.runners.get(name)
      if (runner === undefined) return
      const pending =
        this.#parts.find((part) => part.name === name)?.clients.map(({ plan }) => plan.name) ?? []
      const callId = `${pending[Math.floor(pick * pending.length)]}-0`
      if (what === 0) runner.tell({ type: 'foreground.changed', active })
      else if (what === 1) runner.tell({ type: 'call.promoted', callId })
      else if (what === 2) runner.tell({ type: 'wait.released' })
      else void this.#kernel()?.checkpoint(runner)
    })
  }

  #kernel(): Kernel | null {
    return this.#host === null ? null : kernelOf(this.#host)
  }

  #runners(): ReadonlyArray<ScopeRunner> {
    return [...(this.#kernel()?.runners.values() ?? [])]
  }

  #check(): void {
    if (this.#ledger.broken !== null) throw this.#ledger.broken
    for (const { record } of this.#runners()) {
      const { actor } = record
      const { status, error } = actor.getSnapshot() as { readonly status: string; readonly error?: unknown }
      if (status === 'error') throw error
    }
    // Cheap checks run with every entry; whole snapshots are compared at random steps.
    if (this.#kernel()?.failure === null && this.#draw.odds(snapshotOdds)) {
      this.#ledger.agreesWith(this.#runners())
    }
  }

  #isOver(): boolean {
    const nowMs = this.#machine.timeline.now()
    if (nowMs > startMs + faultyMs + patienceMs)
      throw new InvariantBroken('I3', `never over: ${this.#open()}`)
    return nowMs > startMs + faultyMs && this.#isFinished()
  }

  #isFinished(): boolean {
    const finished = this.#parts.every(({ clients }) => clients.every((client) => client.finished))
    return finished && this.#host !== null && this.#ledger.liveCalls === 0
  }

  #open(): string {
    const clients = this.#parts.flatMap((part) => part.clients.filter((client) => !client.finished))
    return `${this.#ledger.liveCalls} calls live, clients at work: ${clients.map(({ plan }) => plan.name).join(', ')}`
  }
}

/** I8: right after a start no permit is held, and every waiting call waits for its owner. */
const ownerless = ({ scope, inFlight, waiting }: ScopeContext): void => {
  const owned = [...HashMap.values(waiting)].find(({ unclaimedUntilMs }) => unclaimedUntilMs === null)
  if (HashMap.isEmpty(inFlight) && owned === undefined) return
  const [flight] = HashMap.keys(inFlight)
  throw new InvariantBroken(
    'I8',
    `${owned?.call.id ?? flight} of ${scope} still has an owner after a restart`,
  )
}
