/** The Promise face of the host: the same runners, for programs without Effect. */
import type { LimitReading, PolicyInput } from '../../machines/index.ts'
import { currentAmbient, insidePermit, withAmbient } from '../carrier/ambient.ts'
import type { JournalUsage } from '../journal/journal.ts'
import { askForPermit } from './admission.ts'
import { flagOf, idOf, limitsOf, wordOf } from './door.ts'
import { type Explanation, explainCall } from './explain.ts'
import { keepKernel, keepRunner } from './internal.ts'
import type { Kernel } from './kernel.ts'
import type { Permit } from './permit.ts'
import { type CallRequest, callOf } from './request.ts'
import { Run, type RunFace } from './run.ts'
import { type ScopeKey, scopeName } from './scope-name.ts'
import type { Observation } from './scope-record.ts'
import type { ScopeRunner } from './scope-runner.ts'
import { type HostOptions, openKernel, type RunOptions, readingOf } from './service.ts'
import type { ScopeStatus } from './status.ts'
import { beginTurn, type Turn, type TurnOptions } from './turn.ts'
import { Watch } from './watch.ts'

export interface AdmitOptions {
  /** The grant is the dispatch: for a holder that sends at once. Default false. */
  readonly dispatchAtOnce?: boolean
}

/** One scope: all calls that share one admission. */
export class LaneScope {
  readonly #runner: ScopeRunner

  constructor(runner: ScopeRunner) {
    this.#runner = runner
    keepRunner(this, runner)
  }

  get name(): string {
    return this.#runner.name
  }

  /** The scope's present status, without content. */
  get status(): ScopeStatus {
    return this.#runner.status
  }

  /**
   * Runs `fn` with a permit and settles the permit by the result or error of `fn`. `fn` runs again when the
   * provider refused the call before it began to answer, or when a primary took its place. Pass
   * `permit.signal` on, and turn the SDK's own retries off. Rejects with an `AdmissionError`, with the
   * signal's reason, or with the error of `fn`.
   *
   * Where `fn` gives a stream (an async iterable, a ReadableStream, a stream class of `openai`,
   * `@anthropic-ai/sdk` or `@google/genai`, a result of the AI SDK, or an object with one of these as
   * `data` or `stream`), the permit is held until the stream's end, its break or its abort, and its
   * usage is read from it. Anything else that goes on after `fn` has returned, such as a `Response`
   * or a callback, is not seen. Take the permit yourself there:
   * `await using permit = await scope.admit(request, { dispatchAtOnce: true })`, and after the end
   * `permit.settle({ outcome: 'completed', usage })`.
   */
  run<A>(
    request: CallRequest,
    fn: (permit: Permit) => A | PromiseLike<A>,
    options?: RunOptions<A>,
  ): Promise<A> {
    return new Promise((resolve, reject) => {
      const ambient = currentAmbient()
      const call = callOf(request, this.name, ambient, this.#runner.clock)
      const { id: callId, priorityClass } = call
      const face: RunFace<A> = {
        begin: (permit, ended) => {
          const attempt = { isOver: false }
          const permitted = insidePermit(ambient, { scope: this.name, callId, priorityClass }, attempt)
          withAmbient(permitted, async () => fn(permit))
            .finally(() => {
              attempt.isOver = true
            })
            .then(
              (value) => ended({ value }),
              (error: unknown) => ended({ error, interrupted: false }),
            )
        },
        succeeded: resolve,
        failed: reject,
        refused: reject,
        left: reject,
      }
      new Run(this.#runner, call, readingOf(this.name, options), face, request.signal).start()
    })
  }

  /**
   * Results and errors of `run` whose reader of usage or evidence threw. They count, but without usage or
   * evidence.
   */
  get readerFailures(): number {
    return this.#runner.readerFailures
  }

  /**
   * A permit that you settle: call `dispatched`, `accepted` and `settle` yourself, or hold it with `await
   * using`.
   */
  async admit(request: CallRequest, { dispatchAtOnce = false }: AdmitOptions = {}): Promise<Permit> {
    const call = callOf(request, this.name, currentAmbient(), this.#runner.clock)
    const dispatch = dispatchAtOnce ? 'withGrant' : 'byOwner'
    return new Promise((resolve, reject) => {
      const applicant = { granted: resolve, refused: reject, left: reject }
      askForPermit(this.#runner, call, dispatch, applicant, request.signal)
    })
  }

  /** Limits that the provider's headers show. They correct the budget, down and up. */
  learn(limits: ReadonlyArray<LimitReading>): void {
    this.#runner.learn(limitsOf(limits))
  }

  /**
   * Tells the scope whether another process serves a person (see leases). Background then waits, at most
   * `maxDeferralMs`.
   */
  setForeground(active: boolean): void {
    this.#runner.tell({ type: 'foreground.changed', active: flagOf('active', active) })
  }

  /**
   * Declares a turn: with `hold` no auxiliary is admitted between its rounds, except those that
   * carry its id or that a primary depends on; with `yield` the gate opens between rounds.
   */
  beginTurn(
    turnId: string,
    { betweenRounds = 'hold' }: { readonly betweenRounds?: 'hold' | 'yield' } = {},
  ): void {
    this.#runner.tell({
      type: 'turn.began',
      turnId: idOf('turnId', turnId),
      betweenRounds: wordOf('betweenRounds', betweenRounds, ['hold', 'yield']),
    })
  }

  endTurn(turnId: string): void {
    this.#runner.tell({ type: 'turn.ended', turnId: idOf('turnId', turnId) })
  }

  /**
   * Runs `fn` as a turn, which ends when `fn` does, also where it throws. Calls inside that say
   * `turn.call(request)` are the turn's own.
   */
  async turn<A>(fn: (turn: Turn) => A | PromiseLike<A>, options: TurnOptions = {}): Promise<A> {
    const turn = beginTurn(this.#runner, options)
    try {
      return await fn(turn)
    } finally {
      turn.end()
    }
  }

  /** Lets a waiting auxiliary through as if a primary depended on it. */
  promote(callId: string): void {
    this.#runner.tell({ type: 'call.promoted', callId: idOf('callId', callId) })
  }

  /** Ends the waits and backoffs that the provider's refusals imposed, on an operator's decision. */
  releaseWait(): void {
    this.#runner.tell({ type: 'wait.released' })
  }

  /** Withdraws a waiting call, or aborts the signal of its permit. */
  withdraw(callId: string): void {
    this.#runner.takeAway(idOf('callId', callId))
  }
}

export class LaneHost implements AsyncDisposable {
  readonly #kernel: Kernel

  constructor(kernel: Kernel) {
    this.#kernel = kernel
    keepKernel(this, kernel)
  }

  /**
   * The scope of a key. A given policy takes effect at once, with calls in flight. Without one the present
   * policy stays.
   */
  scope(key: ScopeKey, policy?: PolicyInput): LaneScope {
    return new LaneScope(this.#kernel.scope(scopeName(key), policy))
  }

  /** Why a call waits, or how it ended, in a few lines; null when the journal does not know it. */
  explain(callId: string): Promise<Explanation | null> {
    return explainCall(this.#kernel, callId)
  }

  /** Every scope that this host knows, without content. */
  status(): ReadonlyArray<ScopeStatus> {
    return [...this.#kernel.runners.values()].map(({ status }) => status)
  }

  /** What the journal takes on the disk, and how far back it reaches. Rejects with `JournalFailure`. */
  journalUsage(): Promise<JournalUsage> {
    return this.#kernel.journal.usage()
  }

  /**
   * From now on, every event with its decisions, once durable. A slow reader loses the oldest and never
   * delays a scope. Ends when the host has closed.
   */
  watch(): AsyncIterableIterator<Observation, undefined> & Disposable {
    return new Watch(this.#kernel)
  }

  /**
   * Releases every waiter with `HostClosed` and ends. Waiting calls keep their places in the journal. Open
   * permits have `graceMs` to settle; after that their outcome is unknown to the next host.
   */
  close({ graceMs = 0 }: { readonly graceMs?: number } = {}): Promise<void> {
    return this.#kernel.close(graceMs)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close()
  }
}

/**
 * Opens a host. Rejects with the journal's error when its history cannot be read or another
 * process holds it; nothing is left open then.
 */
export const openHost = async (options: HostOptions = {}): Promise<LaneHost> =>
  new LaneHost(await openKernel(options))
