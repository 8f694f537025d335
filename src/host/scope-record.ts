/**
 * A scope's actor and its record: every event is stamped, decided, journaled and published; the one timer of
 * the scope is kept. A scope whose journal fails, or whose invariant breaks, stops here.
 */
import type {
  Decision,
  EpisodeSummary,
  InvalidInput,
  ScopeContext,
  ScopeEvent,
} from '../../machines/index.ts'
import { wakeAt } from '../../machines/index.ts'
import type { Clock } from '../clock.ts'
import { Alarm } from './alarm.ts'
import type { Outbox } from './outbox.ts'
import { recordText } from './record-text.ts'
import type { ScopeActor } from './scope-actor.ts'

/** One event of a scope with its decisions, published once durable. */
export interface Observation {
  readonly scope: string
  readonly position: number
  readonly event: ScopeEvent
  readonly decisions: ReadonlyArray<Decision>
  readonly episode: EpisodeSummary | null
}

/** Events as a runner receives them: the record stamps the time. */
export type Unstamped<E> = E extends ScopeEvent ? Omit<E, 'at'> : never

export interface RecordPorts {
  readonly clock: Clock
  readonly outbox: Outbox
  readonly observe: (observation: Observation) => void
  /** Whether an observer is attached; most hosts have none. */
  readonly isObserved: () => boolean
}

/** The part of a runner that its record reports to. */
export interface RecordListener {
  /** The event was refused and changes nothing. */
  readonly refused: (event: ScopeEvent) => void
  /** A decision of the entry at `position`; it may be carried out once that entry is durable. */
  readonly decided: (decision: Decision, position: number) => void
  /** An entry was written. */
  readonly written: (episodeEnded: boolean) => void
  /** The scope decides no more. */
  readonly failed: (cause: unknown) => void
}

export class ScopeRecord {
  readonly #scope: string
  readonly actor: ScopeActor
  readonly #ports: RecordPorts
  readonly #listener: RecordListener
  readonly #alarm: Alarm
  #failure: unknown = null
  /** Why the actor refused the last event. */
  #refusal: InvalidInput | null = null
  #closed = false
  /** Position of the newest entry, 0 before the first. */
  position = 0
  entriesSinceCheckpoint = 0
  /** Position of the first entry that no durable checkpoint covers; null when every entry is covered. */
  uncoveredFrom: number | null = null

  constructor(scope: string, actor: ScopeActor, ports: RecordPorts, listener: RecordListener) {
    this.#scope = scope
    this.actor = actor
    this.#ports = ports
    this.#listener = listener
    this.#alarm = new Alarm(ports.clock, () => this.#wake())
    // A broken invariant stops the scope. Without a listener XState would throw the error at the process.
    actor.subscribe({ error: (error) => this.fail(error) })
    actor.on('refused', ({ error }) => {
      this.#refusal = error
    })
  }

  get context(): ScopeContext {
    return this.actor.getSnapshot().context.scope
  }

  /** Why the scope has stopped; null while it runs. */
  get failure(): unknown {
    return this.#failure
  }

  stamped(fact: Unstamped<ScopeEvent>): ScopeEvent {
    return { ...fact, at: this.#ports.clock.now() } as ScopeEvent
  }

  /**
   * Sends an event to the actor. Returns its position in the journal, or null when the scope has stopped.
   * Throws `InvalidInput` for a malformed event: nothing is written, and the scope continues.
   */
  take(event: ScopeEvent): number | null {
    if (this.#failure !== null || this.#closed) return null
    this.actor.send(event)
    if (this.#failure !== null) return null
    const refusal = this.#refusal
    this.#refusal = null
    if (refusal !== null) {
      this.#listener.refused(event)
      throw refusal
    }
    const { decisions, summary: episode } = this.context
    try {
      const record = recordText(event, decisions)
      this.position = this.#ports.outbox.write({ scope: this.#scope, at: event.at, record })
    } catch (error) {
      this.fail(error)
      return null
    }
    this.entriesSinceCheckpoint += 1
    this.uncoveredFrom ??= this.position
    const { position } = this
    if (this.#ports.isObserved()) {
      const observation = { scope: this.#scope, position, event, decisions, episode }
      this.#ports.outbox.after(position, () => this.#ports.observe(observation))
    }
    for (const decision of decisions) this.#listener.decided(decision, position)
    this.#alarm.set(wakeAt(this.context))
    this.#listener.written(episode !== null)
    return position
  }

  /** Stops deciding, because the journal cannot record it or an invariant broke. */
  fail(cause: unknown): void {
    if (this.#failure !== null) return
    this.#failure = cause
    this.#alarm.stop()
    this.#listener.failed(cause)
  }

  /** Takes no more events. */
  close(): void {
    this.#closed = true
    this.#alarm.stop()
  }

  /** The scope leaves memory. */
  rest(): void {
    this.#alarm.stop()
    this.actor.stop()
  }

  #wake(): number | null {
    if (this.#failure !== null || this.#closed) return null
    const due = wakeAt(this.context)
    // The core's clock stands at its newest event. Only a time that has come needs an event.
    if (due === null || due > this.#ports.clock.now()) return due
    this.take(this.stamped({ type: 'clock.woke' }))
    return wakeAt(this.context)
  }
}
