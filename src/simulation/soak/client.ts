/**
 * A client in a closed loop: it asks for one call after another, and asks for its call again after a restart.
 */
import { Preempted } from '../../host/errors.ts'
import type { LaneScope } from '../../host/host.ts'
import type { Permit } from '../../host/permit.ts'
import type { CallRequest } from '../../host/request.ts'
import { InvariantBroken } from '../witness.ts'
import { type Draw, drawFrom } from './draw.ts'
import { type Ledger, secret } from './ledger.ts'
import type { Life, Machine } from './machine.ts'
import type { ClientPlan } from './plan.ts'
import type { Upstream } from './upstream.ts'

/** The surroundings of a client. */
export interface ClientPorts {
  readonly machine: Machine
  readonly ledger: Ledger
  readonly upstream: Upstream
  /** The scope in the running process; null while there is no process. */
  readonly scope: () => { readonly scope: LaneScope; readonly life: Life } | null
  /** Ids of calls that other calls of the same scope wait for now. */
  readonly pending: Set<string>
}

interface Pending {
  readonly request: CallRequest & { readonly id: string; readonly inputTokens: number }
  readonly outputTokens: number
  /** The client gives up after this time, ms; null when it is patient. */
  readonly abortsAfterMs: number | null
  readonly nests: boolean
  /** The client has already given up. */
  aborted: boolean
}

const aborted = new Error(`aborted by its client ${secret}`)

export class Client {
  readonly plan: ClientPlan
  readonly #ports: ClientPorts
  readonly #draw: Draw
  #made = 0
  #pending: Pending | null = null
  #finished = false

  constructor(seed: number, scope: string, plan: ClientPlan, ports: ClientPorts) {
    this.plan = plan
    this.#ports = ports
    this.#draw = drawFrom(seed, `client ${scope} ${plan.name}`)
    this.#later()
  }

  get finished(): boolean {
    return this.#finished
  }

  /** A new process runs: a client that still wants an answer asks again under the same id. */
  resume(): void {
    if (this.#pending === null) return
    if (this.#pending.aborted && this.#draw.odds(0.5)) return this.#over('aborted')
    if (this.#draw.odds(this.plan.forgetful ? 0.8 : 0.05)) return this.#over('forgotten')
    const life = this.#ports.scope()?.life
    this.#ports.machine.after(this.#draw.whole(0, 3_000), () => {
      if (life === this.#ports.scope()?.life) this.#ask()
    })
  }

  #later(): void {
    if (this.#made >= this.plan.calls) {
      this.#finished = true
      return
    }
    this.#ports.machine.after(this.#draw.whole(0, this.plan.thinkMs), () => this.#begin())
  }

  #begin(): void {
    const { lane, priorityClass, principal, largestInputTokens, name } = this.plan
    const draw = this.#draw
    const id = `${name}-${this.#made++}`
    const now = this.#ports.machine.now()
    const request = {
      id,
      lane,
      priorityClass,
      principal,
      inputTokens: draw.whole(0, largestInputTokens),
      outputTokens: draw.whole(0, 400),
      ...(draw.odds(0.1) ? { deadlineAt: now + draw.whole(500, 120_000) } : {}),
      ...(lane === 'primary' && draw.odds(0.2) ? { turnId: `turn of ${id}` } : {}),
      ...(lane === 'primary' && draw.odds(0.15) ? { dependsOn: [this.#anyPending()] } : {}),
    }
    const abortsAfterMs = draw.odds(0.1) ? draw.whole(0, 30_000) : null
    this.#pending = {
      request,
      outputTokens: request.outputTokens,
      abortsAfterMs,
      nests: draw.odds(0.05),
      aborted: false,
    }
    this.#ports.pending.add(id)
    this.#ask()
  }

  #anyPending(): string {
    const known = [...this.#ports.pending]
    return known.length > 0 && this.#draw.odds(0.9) ? this.#draw.of(known) : 'never-asked-for'
  }

  #ask(): void {
    const running = this.#ports.scope()
    const pending = this.#pending
    if (running === null || pending === null) return
    const { scope, life } = running
    const { request } = pending
    const { ledger } = this.#ports
    const hear = (outcome: string) => {
      if (life.alive && this.#pending === pending) ledger.note(() => this.#heard(outcome, scope))
    }
    if (request.turnId !== undefined) scope.beginTurn(request.turnId)
    const signal = this.#signal(pending, life)
    const asked = { ...request, ...(signal === null ? {} : { signal }) }
    const answer = this.plan.admits
      ? this.#withPermit(scope, asked, pending, life)
      : scope.run(asked, (permit) => this.#use(permit, scope, pending, life))
    answer.then(
      () => hear('completed'),
      (error: unknown) => hear(nameOf(error)),
    )
  }

  #signal(pending: Pending, life: Life): AbortSignal | null {
    if (pending.abortsAfterMs === null) return null
    const controller = new AbortController()
    this.#ports.machine.after(pending.abortsAfterMs, () => {
      if (!life.alive) return
      pending.aborted = true
      controller.abort(aborted)
    })
    return controller.signal
  }

  async #withPermit(scope: LaneScope, asked: CallRequest, pending: Pending, life: Life): Promise<void> {
    const permit = await scope.admit(asked)
    try {
      await permit.dispatched()
      await this.#use(permit, scope, pending, life)
      if (life.alive) permit.settle({ outcome: 'completed' })
    } catch (error) {
      if (life.alive) permit.settle({ outcome: permit.signal.aborted ? 'cancelled' : 'failed' })
      throw error
    }
  }

  async #use(permit: Permit, scope: LaneScope, { request, outputTokens, nests }: Pending, life: Life) {
    const { id, inputTokens } = request
    const { upstream } = this.#ports
    if (nests && life.alive) {
      const child = { id: `${id}.${permit.attempt}`, inputTokens: 10, lane: this.plan.lane }
      const send = (inner: Permit) => upstream.send({ ...child, outputTokens: 5 }, inner, life)
      // The child's outcome does not matter here.
      await scope.run(child, send).catch(() => {})
    }
    return upstream.send({ id, lane: this.plan.lane, inputTokens, outputTokens }, permit, life)
  }

  #heard(outcome: string, scope: LaneScope): void {
    const { id, turnId } = this.#pending!.request
    if (outcome === 'Preempted') {
      // The holder of a bare permit asks for the same place again.
      this.#ports.ledger.trace(`${id} ${outcome}`)
      return this.#ask()
    }
    // The process is about to end; the call keeps its place.
    if (outcome === 'HostClosed' || outcome === 'ScopeFailed') return
    if (turnId !== undefined) scope.endTurn(turnId)
    this.#over(outcome)
  }

  #over(outcome: string): void {
    const { id } = this.#pending!.request
    if (!knownOutcomes.has(outcome)) throw new InvariantBroken('I3', `${id} ended as ${outcome}`)
    this.#ports.ledger.trace(`${id} ${outcome}`)
    this.#ports.pending.delete(id)
    this.#pending = null
    this.#later()
  }
}

const nameOf = (error: unknown): string => {
  if (error === aborted) return 'aborted'
  if (error instanceof Preempted) return 'Preempted'
  const { _tag, code, status } = error as { _tag?: string; code?: string; status?: number }
  return _tag ?? code ?? (status === undefined ? String(error) : `status ${status}`)
}

const knownOutcomes: ReadonlySet<string> = new Set([
  'completed',
  'forgotten',
  'aborted',
  'ECONNRESET',
  'status 429',
  'status 529',
  'status 400',
  'DeadlineExceeded',
  'PendingTimeout',
  'ActiveTimeout',
  'OutcomeUnknown',
  'AlreadySettled',
  'ExceedsLimit',
  'AttemptsExhausted',
  'NotRetryable',
  'Abandoned',
  'Unclaimed',
])
