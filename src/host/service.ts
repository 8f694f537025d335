/** The Effect face of the host: a service, its layer, and the scopes that it hands out. */
import { Context, Effect, Fiber, Layer, Queue, type Scope, Stream } from 'effect'
import type { Evidence, PolicyInput, Usage } from '../../machines/index.ts'
import { type Ambient, currentAmbient, insidePermit, withAmbient } from '../carrier/ambient.ts'
import { type Clock, systemClock } from '../clock.ts'
import { evidenceOfError } from '../evidence/error-evidence.ts'
import { readUsage } from '../evidence/index.ts'
import type { Journal } from '../journal/journal.ts'
import { openJournal } from '../journal/open.ts'
import type { AdmissionError } from './errors.ts'
import { type Explanation, explainCall } from './explain.ts'
import { defaultScopesInMemory, Kernel } from './kernel.ts'
import type { Permit } from './permit.ts'
import { type CallRequest, callOf } from './request.ts'
import { awaitPermit, interruption, type Reading, runCall } from './run.ts'
import { type ScopeKey, scopeName } from './scope-name.ts'
import type { Observation, ScopeRunner } from './scope-runner.ts'
import { type ScopeStatus, scopeStatus } from './status.ts'

export interface HostOptions {
  /** Path of the journal file, `:memory:`, or a journal. Default `:memory:`. */
  readonly journal?: string | Journal
  /** Default: the machine's own. */
  readonly clock?: Clock
  /**
   * Scopes at rest (nothing waits, runs or is due) that are kept in memory, at least 1; beyond that the
   * least recently used leave and come back from the journal when asked for. Default 1,024.
   */
  readonly scopesInMemory?: number
}

export interface RunOptions<A> {
  /** Reads a result's token usage. Default: the shapes of Anthropic, OpenAI and Gemini answers. */
  readonly usage?: (result: A) => Usage | null
  /** Reads what an error says about capacity. Default: the errors of the official SDKs. */
  readonly evidence?: (error: unknown) => Evidence | null
}

/** One scope, for Effect programs. */
export interface EffectScope {
  readonly name: string
  /** A permit of your own, to be settled by you; left unsettled it counts as cancelled when the Scope closes. */
  readonly admit: (request: CallRequest) => Effect.Effect<Permit, AdmissionError, Scope.Scope>
  /** Runs `use` with a permit and settles it; again when the provider refused it or a primary took its place. */
  readonly run: <A, E, R>(
    request: CallRequest,
    use: (permit: Permit) => Effect.Effect<A, E, R>,
    options?: RunOptions<A>,
  ) => Effect.Effect<A, E | AdmissionError, R>
  readonly status: Effect.Effect<ScopeStatus>
}

export class Host extends Context.Service<
  Host,
  {
    readonly scope: (key: ScopeKey, policy?: PolicyInput) => EffectScope
    /** Why a call waits, or what happened to it; null when the journal does not know it. */
    readonly explain: (callId: string) => Effect.Effect<Explanation | null>
    /** Every event and decision once durable. A slow reader loses the oldest, never delays a scope. */
    readonly watch: Stream.Stream<Observation>
    readonly kernel: Kernel
  }
>()('rightofway/host/Host') {
  static readonly layer = (options: HostOptions = {}): Layer.Layer<Host, unknown> =>
    Layer.effect(Host, makeHost(options))
}

/** Observations that a slow reader of `watch` may fall behind by. */
export const watchBuffer = 4_096

export const openKernel = async ({
  journal = ':memory:',
  clock = systemClock,
  scopesInMemory = defaultScopesInMemory,
}: HostOptions): Promise<Kernel> => {
  const opened = await openJournal(journal)
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
      Effect.tryPromise({ try: () => openKernel(options), catch: (error) => error }),
      (kernel) => Effect.promise(() => kernel.close(0)),
    ),
    (kernel) =>
      Host.of({
        scope: (key, policy) => effectScope(kernel.scope(scopeName(key), policy)),
        explain: (callId) => Effect.promise(() => explainCall(kernel, callId)),
        watch: watch(kernel),
        kernel,
      }),
  )

const watch = (kernel: Kernel): Stream.Stream<Observation> =>
  Stream.callback<Observation>(
    (queue) =>
      Effect.acquireRelease(
        Effect.sync(() => kernel.observe((observation) => Queue.offerUnsafe(queue, observation))),
        (stop) => Effect.sync(stop),
      ),
    { bufferSize: watchBuffer, strategy: 'sliding' },
  )

/** How results and errors of a scope are read, unless the caller says otherwise. */
export const readingOf = <A>(scope: string, options: RunOptions<A> = {}): Reading<A> => {
  const provider = scope.split('/')[0] as string
  return {
    usage: options.usage ?? ((result) => readUsage(provider, result)),
    evidence: options.evidence ?? ((error) => evidenceOfError(provider, error)),
  }
}

/** Runs `effect` in a fiber of its own: a fiber keeps the ambient that it was made in. */
const within = <A, E, R>(ambient: Ambient, effect: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
  Effect.flatMap(Effect.context<R>(), (context) => {
    const fiber = withAmbient(ambient, () => Effect.runForkWith(context)(effect))
    return Effect.onInterrupt(Fiber.join(fiber), () => Fiber.interrupt(fiber))
  })

const effectScope = (runner: ScopeRunner): EffectScope => ({
  name: runner.name,
  admit: (request) =>
    Effect.acquireRelease(
      Effect.suspend(() =>
        awaitPermit(runner, callOf(request, runner.name, currentAmbient()), 'byOwner', request.signal),
      ),
      (permit) => Effect.promise(() => permit[Symbol.asyncDispose]()),
    ),
  run: (request, use, options) =>
    Effect.suspend(() => {
      const ambient = currentAmbient()
      const call = callOf(request, runner.name, ambient)
      const { id: callId, priorityClass } = call
      const permitted = insidePermit(ambient, { scope: runner.name, callId, priorityClass })
      return runCall(
        runner,
        call,
        (permit) => Effect.raceFirst(within(permitted, use(permit)), interruption(permit)),
        readingOf(runner.name, options),
        request.signal,
      )
    }),
  status: Effect.sync(() => scopeStatus(runner.context)),
})
