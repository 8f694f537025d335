import { randomUUID } from 'node:crypto'
import {
  type Call,
  isCall,
  type Lane,
  laneOfClass,
  maxEpochMs,
  type PriorityClass,
  parseCall,
  untaggedClass,
} from '../../machines/index.ts'
import { type Ambient, parentIn } from '../carrier/ambient.ts'
import type { Clock } from '../clock.ts'

/** A caller's description of a call. Every field has a default. */
export interface CallRequest {
  /** Idempotency key, 1 to 256 characters. A random one when left out. */
  readonly id?: string
  /** Derived from the priority class when left out. */
  readonly lane?: Lane
  /** The ambient class when left out, else `orchestration`; `background_ingestion` for a stated auxiliary. */
  readonly priorityClass?: PriorityClass
  /** The user or agent of the call. `default` when left out. */
  readonly principal?: string
  /** Estimated input tokens. 0 when left out. */
  readonly inputTokens?: number
  /** Estimated output tokens. 0 when left out. */
  readonly outputTokens?: number
  /** Output tokens at most that the call allows its answer (`max_tokens`), 0 to 1,000,000,000. */
  readonly maxOutputTokens?: number
  /** Epoch milliseconds by the machine's clock, as `Date.now()` gives them, after which nobody wants the answer. */
  readonly deadlineAt?: number
  readonly turnId?: string
  /** Ids of calls that the caller of this call waits for. */
  readonly dependsOn?: ReadonlyArray<string>
  /** Withdraws the call while it waits; aborts the permit's signal while the call runs. */
  readonly signal?: AbortSignal
}

const classOf = ({ priorityClass, lane }: CallRequest, ambient: Ambient): PriorityClass =>
  priorityClass ?? ambient.priorityClass ?? (lane === 'auxiliary' ? 'background_ingestion' : untaggedClass)

/** A host's clock goes on where the machine's was set back: what a caller read there means another time here. */
const deadlineOf = (stated: number | undefined, clock: Clock | undefined): number | null => {
  if (stated === undefined) return null
  if (clock?.fromMachine === undefined || !Number.isSafeInteger(stated)) return stated
  const isInRange = stated >= 0 && stated <= maxEpochMs
  return isInRange ? Math.min(Math.max(0, clock.fromMachine(stated)), maxEpochMs) : stated
}

/**
 * Fills in what was left out and checks the whole. With the host's clock, the deadline is one by the
 * machine's; without, it is by the host's already. Throws `InvalidInput` with field, range and value.
 */
export const callOf = (request: CallRequest, scope: string, ambient: Ambient, clock?: Clock): Call => {
  const priorityClass = classOf(request, ambient)
  const call: Call = {
    id: request.id ?? randomUUID(),
    turnId: request.turnId ?? null,
    lane: request.lane ?? laneOfClass(priorityClass),
    priorityClass,
    principal: request.principal ?? 'default',
    inputTokens: request.inputTokens ?? 0,
    outputTokens: request.outputTokens ?? 0,
    deadlineAt: deadlineOf(request.deadlineAt ?? undefined, clock),
    dependsOn: request.dependsOn ?? [],
    parentId: parentIn(ambient, scope),
    ...(request.maxOutputTokens === undefined ? {} : { maxOutputTokens: request.maxOutputTokens }),
  }
  return isCall(call) ? call : parseCall(call)
}
