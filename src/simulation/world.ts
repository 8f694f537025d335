/** A provider, virtual time, and a record of every call's outcome: schedulers are compared on this ground. */
import type { Lane, PriorityClass } from '../../machines/index.ts'
import type { LimitFact, Provider } from '../emulator/index.ts'
import { type Answers, faithfulAnswers, HeaderView, refusalHeard, type VisibleRefusal } from './answers.ts'
import type { Timeline } from './timeline.ts'

export interface SimulatedCall {
  readonly id: string
  readonly lane: Lane
  readonly priorityClass: PriorityClass
  readonly principal: string
  /** The number that the provider counts. */
  readonly inputTokens: number
  readonly outputTokens: number
  /** The client's estimate; default the truth. */
  readonly estimatedTokens?: number
  /** How long the client waits for the provider to accept the call, ms; default without end. */
  readonly deadlineMs?: number
}

/** Input tokens as a scheduler may know them: only its client's estimate. */
export const estimateOf = ({ inputTokens, estimatedTokens = inputTokens }: SimulatedCall): number =>
  estimatedTokens

export interface DispatchHooks {
  /** The first token came, with the limits of the answer's headers, if the provider sends any. */
  readonly accepted: (limits: ReadonlyArray<LimitFact>) => void
  readonly refused: (refusal: VisibleRefusal) => void
  readonly completed: () => void
}

/** A scheduler of calls to the provider: it decides when each is sent. */
export interface Scheduler {
  readonly submit: (call: SimulatedCall) => void
  /** Reports calls of strangers on the same limits, which no client could know of: for oracles. */
  readonly strangerAccepted?: (call: SimulatedCall) => void
}

export interface CallRecord {
  readonly call: SimulatedCall
  readonly submittedAtMs: number
  /** Time of acceptance by the provider; null when the call was never accepted. */
  acceptedAtMs: number | null
  endedAtMs: number | null
  /** Dispatches that the provider refused. */
  refusals: number
  /** The client gave up. */
  failed: boolean
}

export class World {
  readonly timeline: Timeline
  readonly provider: Provider
  readonly records = new Map<string, CallRecord>()
  readonly #answers: Answers
  readonly #headers: HeaderView
  readonly #ended = new Map<string, () => void>()

  constructor(timeline: Timeline, provider: Provider, answers: Answers = faithfulAnswers) {
    this.#answers = answers
    this.#headers = new HeaderView(answers)
    this.timeline = timeline
    this.provider = provider
  }

  /** Records that a client asks for a call, and gives the call to the scheduler. `ended` is called once. */
  submit(scheduler: Scheduler, call: SimulatedCall, ended: () => void = () => {}): void {
    this.records.set(call.id, {
      call,
      submittedAtMs: this.timeline.now(),
      acceptedAtMs: null,
      endedAtMs: null,
      refusals: 0,
      failed: false,
    })
    this.#ended.set(call.id, ended)
    const { deadlineMs } = call
    if (deadlineMs !== undefined) {
      const record = this.records.get(call.id)!
      this.timeline.after(deadlineMs, () => {
        if (record.acceptedAtMs === null) this.end(call.id, true)
      })
    }
    scheduler.submit(call)
  }

  /** Whether the client's call is over, so that it must not be sent any more. */
  isOver(callId: string): boolean {
    return this.records.get(callId)!.endedAtMs !== null
  }

  /**
   * Sends the call to the provider now. Returns a function that aborts it. A call that its client has given
   * up is not sent: it completes at once.
   */
  dispatch(call: SimulatedCall, hooks: DispatchHooks): () => void {
    const { timeline, provider } = this
    const record = this.records.get(call.id)!
    if (record.endedAtMs !== null) return timeline.after(0, hooks.completed)
    const begun = provider.begin({
      atMs: timeline.now(),
      callId: call.id,
      lane: call.lane,
      inputTokens: call.inputTokens,
      outputTokens: call.outputTokens,
    })
    if (!begun.accepted) {
      record.refusals += 1
      const { kind, retryAfterMs, permanent, currentLimit, nextLimit } = begun.refusal
      const stated = {
        ...(currentLimit === undefined ? {} : { currentLimit }),
        ...(nextLimit === undefined ? {} : { nextLimit }),
      }
      // The answer takes time: a scheduler never gets a refusal inside its own dispatch.
      const heard = refusalHeard({ kind, retryAfterMs, permanent, ...stated }, this.#answers)
      return timeline.after(this.#answers.refusalsLateMs, () => hooks.refused(heard))
    }
    record.acceptedAtMs = begun.atMs
    const cancelFirst = timeline.at(begun.firstTokenAtMs, () =>
      hooks.accepted(this.#headers.shown(provider.headers(timeline.now()), timeline.now())),
    )
    const cancelEnd = timeline.at(begun.endsAtMs, () => {
      provider.finish({ dispatch: begun.dispatch, atMs: timeline.now() })
      this.end(call.id, false)
      hooks.completed()
    })
    return () => {
      cancelFirst()
      cancelEnd()
      provider.cancel({ dispatch: begun.dispatch, atMs: timeline.now() })
      record.acceptedAtMs = null
    }
  }

  /** Ends the client's call: answered, or given up. */
  end(callId: string, failed: boolean): void {
    const record = this.records.get(callId)!
    if (record.endedAtMs !== null) return
    record.endedAtMs = this.timeline.now()
    record.failed = failed
    this.#ended.get(callId)!()
    this.#ended.delete(callId)
  }
}
