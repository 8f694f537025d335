/** A provider, virtual time, and a record of what became of every call: the ground that schedulers are compared on. */
import type { Lane, PriorityClass } from '../../machines/index.ts'
import type { LimitFact, Provider } from '../emulator/index.ts'
import { type Answers, faithfulAnswers, HeaderView, refusalHeard, type VisibleRefusal } from './answers.ts'
import type { Timeline } from './timeline.ts'

export interface SimulatedCall {
  readonly id: string
  readonly lane: Lane
  readonly priorityClass: PriorityClass
  readonly principal: string
  /** What the provider counts. */
  readonly inputTokens: number
  readonly outputTokens: number
  /** What its client believes; default the truth. */
  readonly estimatedTokens?: number
  /** How long its client waits for the provider to accept it, ms; default without end. */
  readonly deadlineMs?: number
}

/** Input tokens as a scheduler may know them: it never sees more than its client. */
export const estimateOf = ({ inputTokens, estimatedTokens = inputTokens }: SimulatedCall): number =>
  estimatedTokens

export interface DispatchHooks {
  /** The first token came; with what the answer's headers show, where the provider shows anything. */
  readonly accepted: (limits: ReadonlyArray<LimitFact>) => void
  readonly refused: (refusal: VisibleRefusal) => void
  readonly completed: () => void
}

/** Everything that may call the provider: it decides when. */
export interface Scheduler {
  readonly submit: (call: SimulatedCall) => void
  /** Told of calls that share the limits and that no client could know of: for oracles. */
  readonly strangerAccepted?: (call: SimulatedCall) => void
}

export interface CallRecord {
  readonly call: SimulatedCall
  readonly submittedAtMs: number
  /** Accepted by the provider; null when it never was. */
  acceptedAtMs: number | null
  endedAtMs: number | null
  /** Dispatches that the provider refused. */
  refusals: number
  /** Given up by its client. */
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

  /** Notes that a client asks for a call, and hands it to the scheduler. `ended` is told once. */
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

  /** Whether the client's call is over, so that there is nothing to send any more. */
  isOver(callId: string): boolean {
    return this.records.get(callId)!.endedAtMs !== null
  }

  /**
   * Sends the call to the provider now. Answers how to abort it. A call that its client has given up
   * is not sent: it completes at once.
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
      // The answer travels: a scheduler never hears of a refusal inside its own dispatch.
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

  /** The client's call is over: answered, or given up. */
  end(callId: string, failed: boolean): void {
    const record = this.records.get(callId)!
    if (record.endedAtMs !== null) return
    record.endedAtMs = this.timeline.now()
    record.failed = failed
    this.#ended.get(callId)!()
    this.#ended.delete(callId)
  }
}
