/** The Effect face of the host: a service, its layer, and its scopes. */
import { Cause, Context, Effect, Exit, Fiber, Layer, Queue, type Scope, Stream } from 'effect'
import {
  type Evidence,
  InvalidInput,
  type LimitReading,
  type PolicyInput,
  SnapshotUnreadable,
  type Usage,
} from '../../machines/index.ts'
import { currentAmbient, insidePermit, withAmbient } from '../carrier/ambient.ts'
import { type Clock, systemClock } from '../clock.ts'
import { evidenceOfError } from '../evidence/error-evidence.ts'
import { readUsage } from '../evidence/index.ts'
import {
  type Journal,
  JournalCorrupt,
  JournalFailure,
  JournalLocked,
  JournalTooNew,
  JournalUnavailable,
} from '../journal/journal.ts'
import { openWhenFree } from '../journal/patience.ts'
import { type Applicant, askForPermit } from './admission.ts'
import type { AdmissionError } from './errors.ts'
import { type Explanation, explainCall } from './explain.ts'
import { keepKernel, keepRunner } from './internal.ts'
import { defaultScopesInMemory, Kernel } from './kernel.ts'
import type { Permit } from './permit.ts'
import { ReplayDiverged } from './recovery.ts'
import { type CallRequest, callOf } from './request.ts'
import { type Reading, Run, type RunFace } from './run.ts'
import { type ScopeKey, scopeName } from './scope-name.ts'
import type { Observation } from './scope-record.ts'
import type { ScopeRunner } from './scope-runner.ts'
import type { ScopeStatus } from './status.ts'
import { beginTurn, type Turn, type TurnOptions } from './turn.ts'
import { checkUnreadTimeout } from './unread-timeout.ts'
import { watchBuffer } from './watch.ts'

export interface HostOptions {
  /** Path of the journal file, `:memory:`, or a journal. Default `:memory:`. */
  readonly journal?: string | Journal
  /** Default: the machine's own clock. */
  readonly clock?: Clock
  /**
   * Scopes at rest (nothing waits, runs or is due) that are kept in memory, at least 1; beyond that the
   * least recently used leave and come back from the journal when asked for. Default 1,024.
   */
  readonly scopesInMemory?: number
  /** How long history is kept, for a journal given by its path. */
  readonly retention?: Retention
  /**
   * How long to wait for a journal that another process holds, ms; its lease may end. Default 0: rejects
   * with `JournalLocked` at once.
   */
  readonly lockWaitMs?: number
  /** Told once, before it waits. */
  readonly onLocked?: (locked: JournalLocked) => void
}

export interface Retention {
  /** How long entries that a checkpoint covers are kept, ms. Default 24 h. */
  readonly keepMs?: number
  /** Size of the file in use, bytes, above which the oldest of it goes sooner. Default: no bound. */
  readonly keepBytes?: number
}

export interface RunOptions<A> {
  /** Reads a result's token usage, a stream's at its end. Default: the shapes of Anthropic, OpenAI and Gemini answers and chunks. */
  readonly usage?: (result: A) => Usage | null
  /** Reads the evidence about capacity in an error. Default: the errors of the official SDKs. */
  readonly evidence?: (error: unknown) => Evidence | null
  /**
   * A stream whose reader does not read on for this long is given up: its reader gets `AnswerUnread`, and
   * its place is free. Milliseconds, 1 to 2147483647; default 60000.
   */
  readonly unreadTimeoutMs?: number
}

/** One scope, for Effect programs. */
export interface EffectScope {
  readonly name: string
  /** A permit that you settle. If you leave it unsettled, it counts as cancelled when the Scope closes. */
  readonly admit: (request: CallRequest) => Effect.Effect<Permit, AdmissionError, Scope.Scope>
  /**
   * Runs `use` with a permit and settles it. Runs `use` again after a refusal of the provider or a preemption
   * by a primary.
   */
  readonly run: <A, E, R>(
    request: CallRequest,
    use: (permit: Permit) => Effect.Effect<A, E, R>,
    options?: RunOptions<A>,
  ) => Effect.Effect<A, E | AdmissionError, R>
  readonly status: Effect.Effect<ScopeStatus>
  /** A turn that lasts until the Scope closes: see `LaneScope.turn`. */
  readonly turn: (options?: TurnOptions) => Effect.Effect<Turn, never, Scope.Scope>
  /** Lets a waiting auxiliary through as if a primary depended on it. */
  readonly promote: (callId: string) => Effect.Effect<void>
  /** Limits that the provider's headers show: they correct the budget, down and up. */
  readonly learn: (limits: ReadonlyArray<LimitReading>) => Effect.Effect<void>
  /** Withdraws a waiting call, or aborts the signal of its permit. */
  readonly withdraw: (callId: string) => Effect.Effect<void>
}

/**
 * Why a host does not open: its journal is held, unreadable, too new, unavailable or failing; or a scope in
 * it cannot continue.
 */
export type HostOpenError =
  | JournalLocked
  | JournalTooNew
  | JournalUnavailable
  | JournalCorrupt
  | JournalFailure
  | SnapshotUnreadable
  | ReplayDiverged
  | InvalidInput

const openErrors = [
  JournalLocked,
  JournalTooNew,
  JournalUnavailable,
  JournalCorrupt,
  JournalFailure,
  SnapshotUnreadable,
  ReplayDiverged,
  InvalidInput,
]

const isHostOpenError = (error: unknown): error is HostOpenError =>
  openErrors.some((kind) => error instanceof kind)

export class Host extends Context.Service<
  Host,
  {
    readonly scope: (key: ScopeKey, policy?: PolicyInput) => EffectScope
    /** Why a call waits, or how it ended; null when the journal does not know it. */
    readonly explain: (callId: string) => Effect.Effect<Explanation | null>
    /**
     * Every event with its decisions, once durable. A slow reader loses the oldest and never delays a scope.
     * Ends when the host has closed.
     */
    readonly watch: Stream.Stream<Observation>
  }
>()('rightofway/host/Host') {
  static readonly layer = (options: HostOptions = {}): Layer.Layer<Host, HostOpenError> =>
    Layer.effect(Host, makeHost(options))
}

export const openKernel = async ({
  journal = ':memory:',
  clock = systemClock,
  scopesInMemory = defaultScopesInMemory,
  retention = {},
  lockWaitMs = 0,
  onLocked = () => {},
}: HostOptions): Promise<Kernel> => {
  const { keepMs, keepBytes } = retention
  const kept = {
    ...(keepMs === undefined ? {} : { keepEntriesMs: keepMs }),
    ...(keepBytes === undefined ? {} : { keepBytes }),
  }
  const opened = await openWhenFree(journal, kept, { lockWaitMs, onLocked })
  const journalPath = typeof journal === 'string' ? journal : 'given'
  try {
    return await Kernel.open({ journal: opened, journalPath, clock, scopesInMemory })
  } catch (error) {
    await opened.close()
    throw error
  }
}

const makeHost = (options: HostOptions) =>
  Effect.map(
    Effect.acquireRelease(
      Effect.catch(
        Effect.tryPromise({ try: () => openKernel(options), catch: (error) => error }),
        // Any other error is a fault of the program, not of its journal.
        (error) => (isHostOpenError(error) ? Effect.fail(error) : Effect.die(error)),
      ),
      (kernel) => Effect.promise(() => kernel.close(0)),
    ),
    (kernel) => {
      const host = Host.of({
        scope: (key, policy) => effectScope(kernel.scope(scopeName(key), policy)),
        explain: (callId) => Effect.promise(() => explainCall(kernel, callId)),
        watch: watch(kernel),
      })
      keepKernel(host, kernel)
      return host
    },
  )

const watch = (kernel: Kernel): Stream.Stream<Observation> =>
  Stream.callback<Observation>(
    (queue) =>
      Effect.acquireRelease(
        Effect.sync(() =>
          kernel.observe(
            (observation) => Queue.offerUnsafe(queue, observation),
            () => Queue.endUnsafe(queue),
          ),
        ),
        (stop) => Effect.sync(stop),
      ),
    { bufferSize: watchBuffer, strategy: 'sliding' },
  )

/** The readers of a scope's results and errors; the caller may replace them. */
export const readingOf = <A>(scope: string, options: RunOptions<A> = {}): Reading<A> => {
  const provider = scope.split('/')[0] as string
  return {
    usage: options.usage ?? ((result) => readUsage(provider, result)),
    evidence: options.evidence ?? ((error) => evidenceOfError(provider, error)),
    ownUsage: options.usage ?? null,
    provider,
    unreadTimeoutMs: checkUnreadTimeout(options.unreadTimeoutMs),
  }
}

/** Runs the attempts of a call as fibers. Each attempt sees its own permit as the surrounding one. */
const effectRun = <A, E, R>(
  runner: ScopeRunner,
  request: CallRequest,
  use: (permit: Permit) => Effect.Effect<A, E, R>,
  options: RunOptions<A> | undefined,
): Effect.Effect<A, E | AdmissionError, R> =>
  Effect.flatMap(Effect.context<R>(), (context) =>
    Effect.callback<A, E | AdmissionError>((resume) => {
      const ambient = currentAmbient()
      const call = callOf(request, runner.name, ambient, runner.clock)
      const { id: callId, priorityClass } = call
      let fiber: Fiber.Fiber<A, E> | null = null
      let own: Exit.Exit<A, E> | null = null
      // Waits for an interrupted attempt to end: its finalizers belong to the call.
      const ended: Effect.Effect<unknown> = Effect.suspend(() =>
        fiber === null ? Effect.void : Fiber.interrupt(fiber),
      )
      const face: RunFace<A> = {
        begin: (permit, done) => {
          const state = { isOver: false }
          const permitted = insidePermit(ambient, { scope: runner.name, callId, priorityClass }, state)
          fiber = withAmbient(permitted, () => Effect.runForkWith(context)(Effect.suspend(() => use(permit))))
          const attempt = fiber
          // An Effect is interrupted; it does not listen to a signal.
          permit.signal.addEventListener('abort', () => attempt.interruptUnsafe(), { once: true })
          attempt.addObserver((exit) => {
            own = exit
            state.isOver = true
            if (Exit.isSuccess(exit)) done({ value: exit.value })
            else done({ error: Cause.squash(exit.cause), interrupted: Cause.hasInterrupts(exit.cause) })
          })
        },
        succeeded: (value) => resume(Effect.succeed(value)),
        failed: (error) => resume(own ?? Effect.die(error)),
        refused: (error) => resume(Effect.andThen(ended, Effect.fail(error))),
        left: () => resume(Effect.interrupt),
      }
      const run = new Run(runner, call, readingOf(runner.name, options), face, request.signal)
      run.start()
      return Effect.suspend(() => {
        run.leave(new Error(`call ${callId} was interrupted`))
        return ended
      })
    }),
  )

const effectAdmit = (runner: ScopeRunner, request: CallRequest): Effect.Effect<Permit, AdmissionError> =>
  Effect.callback((resume) => {
    const call = callOf(request, runner.name, currentAmbient(), runner.clock)
    let permit: Permit | null = null
    const applicant: Applicant = {
      granted: (granted) => {
        permit = granted
        resume(Effect.succeed(granted))
      },
      refused: (error) => resume(Effect.fail(error)),
      left: () => resume(Effect.interrupt),
    }
    const leave = askForPermit(runner, call, 'byOwner', applicant, request.signal)
    return Effect.sync(() => {
      leave(new Error(`call ${call.id} was interrupted`))
      permit?.leave()
      permit?.settle({ outcome: 'cancelled' })
    })
  })

export const effectScope = (runner: ScopeRunner): EffectScope => {
  const scope: EffectScope = {
    name: runner.name,
    admit: (request) =>
      Effect.acquireRelease(
        effectAdmit(runner, request),
        (permit) => Effect.promise(() => permit[Symbol.asyncDispose]()),
        { interruptible: true },
      ),
    run: (request, use, options) => effectRun(runner, request, use, options),
    status: Effect.sync(() => runner.status),
    turn: (options) =>
      Effect.acquireRelease(
        Effect.sync(() => beginTurn(runner, options)),
        (turn) => Effect.sync(() => turn.end()),
      ),
    promote: (callId) => Effect.sync(() => void runner.tell({ type: 'call.promoted', callId })),
    learn: (limits) => Effect.sync(() => runner.learn(limits)),
    withdraw: (callId) => Effect.sync(() => runner.takeAway(callId)),
  }
  keepRunner(scope, runner)
  return scope
}
