import { randomUUID } from 'node:crypto'
import {
  type Call,
  isCall,
  type Lane,
  laneOfClass,
  type PriorityClass,
  parseCall,
  untaggedClass,
} from '../../machines/index.ts'
import { type Ambient, parentIn } from '../carrier/ambient.ts'

/** What a caller says of a call. Everything has a default. */
export interface CallRequest {
  /** Idempotency key, 1 to 256 characters. Drawn when left out. */
  readonly id?: string
  /** Derived from the priority class when left out. */
  readonly lane?: Lane
  /** The ambient class when left out, else `orchestration`; `background_ingestion` for a stated auxiliary. */
  readonly priorityClass?: PriorityClass
  /** Who is asking. `default` when left out. */
  readonly principal?: string
  /** Estimated input tokens. 0 when left out. */
  readonly inputTokens?: number
  /** Estimated output tokens. 0 when left out. */
  readonly outputTokens?: number
  /** Output tokens at most that the call allows its answer (`max_tokens`), 0 to 1,000,000,000. */
  readonly maxOutputTokens?: number
  /** Epoch milliseconds after which nobody wants the answer. */
  readonly deadlineAt?: number
  readonly turnId?: string
  /** Ids of calls that this one's caller waits for. */
  readonly dependsOn?: ReadonlyArray<string>
  /** Withdraws the call while it waits, aborts the permit's signal while it runs. */
  readonly signal?: AbortSignal
}

const classOf = ({ priorityClass, lane }: CallRequest, ambient: Ambient): PriorityClass =>
  priorityClass ?? ambient.priorityClass ?? (lane === 'auxiliary' ? 'background_ingestion' : untaggedClass)

/** Fills in what was left out and checks the whole. Throws `InvalidInput` with field, range and value. */
export const callOf = (request: CallRequest, scope: string, ambient: Ambient): Call => {
  const priorityClass = classOf(request, ambient)
  const call: Call = {
    id: request.id ?? randomUUID(),
    turnId: request.turnId ?? null,
    lane: request.lane ?? laneOfClass(priorityClass),
    priorityClass,
    principal: request.principal ?? 'default',
    inputTokens: request.inputTokens ?? 0,
    outputTokens: request.outputTokens ?? 0,
    deadlineAt: request.deadlineAt ?? null,
    dependsOn: request.dependsOn ?? [],
    parentId: parentIn(ambient, scope),
    ...(request.maxOutputTokens === undefined ? {} : { maxOutputTokens: request.maxOutputTokens }),
  }
  return isCall(call) ? call : parseCall(call)
}
