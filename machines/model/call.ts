import { Schema } from 'effect'
import { decodeOrThrow, integer, text } from './invalid.ts'

/** Wire names of the priority classes, highest first. */
export const priorityClasses = ['interactive', 'orchestration', 'hydration', 'background_ingestion'] as const
export type PriorityClass = (typeof priorityClasses)[number]

/**
 * Lower rank goes first. Hydration loads the toolset; orchestration cannot start before it, so both have one
 * rank.
 */
export const priorityRanks: Readonly<Record<PriorityClass, number>> = {
  interactive: 0,
  orchestration: 1,
  hydration: 1,
  background_ingestion: 3,
}

/** The class of an untagged call. */
export const untaggedClass: PriorityClass = 'orchestration'

export const lanes = ['primary', 'auxiliary'] as const
export type Lane = (typeof lanes)[number]

/** Only background ingestion yields; every other class is primary unless the caller states its lane. */
export const laneOfClass = (priorityClass: PriorityClass): Lane =>
  priorityClass === 'background_ingestion' ? 'auxiliary' : 'primary'

/**
 * Largest token count of any field: far above every model's window, far below the loss of precision in sums.
 */
export const maxTokens = 1_000_000_000

/** Latest epoch milliseconds that a `Date` can hold. */
export const maxEpochMs = 8_640_000_000_000_000

export const CallSchema = Schema.Struct({
  id: text(1, 256),
  /** One turn may make several calls (tool rounds, retries). */
  turnId: Schema.NullOr(text(1, 256)),
  lane: Schema.Literals(lanes),
  priorityClass: Schema.Literals(priorityClasses),
  principal: text(1, 256),
  /** Estimated input tokens. */
  inputTokens: integer(0, maxTokens),
  /** Estimated output tokens; 0 when unknown. */
  outputTokens: integer(0, maxTokens),
  /**
   * Epoch milliseconds. The caller does not want the answer after this time, whether the call waits or runs.
   */
  deadlineAt: Schema.NullOr(integer(0, maxEpochMs)),
  /** Ids of calls that the caller of this call waits for. These calls pass a closed gate. */
  dependsOn: Schema.Array(text(1, 256)),
  /**
   * Id of the call in whose permit this call was made; null when there is none. This call may borrow that
   * permit's place.
   */
  parentId: Schema.NullOr(text(1, 256)),
  /** Output tokens at most that the call allows its answer (`max_tokens`). Left out when it states none. */
  maxOutputTokens: Schema.optionalKey(integer(0, maxTokens)),
})

/** One dispatch to the provider, without any of its content. */
export type Call = typeof CallSchema.Type

const isText = (value: unknown): value is string =>
  // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what it looks for
  typeof value === 'string' && value.length > 0 && value.length <= 256 && !/[\x00-\x1f\x7f-\x9f]/.test(value)

const isCount = (value: unknown, maximum: number): boolean =>
  Number.isInteger(value) && (value as number) >= 0 && (value as number) <= maximum

/**
 * Accepts the same values as `CallSchema`, a hundred times faster. When it refuses one, the schema names the
 * fault.
 */
export const isCall = (call: Call): boolean =>
  typeof call === 'object' &&
  call !== null &&
  isText(call.id) &&
  lanes.includes(call.lane) &&
  Object.hasOwn(priorityRanks, call.priorityClass) &&
  isText(call.principal) &&
  isCount(call.inputTokens, maxTokens) &&
  isCount(call.outputTokens, maxTokens) &&
  (call.maxOutputTokens === undefined || isCount(call.maxOutputTokens, maxTokens)) &&
  (call.deadlineAt === null || isCount(call.deadlineAt, maxEpochMs)) &&
  (call.turnId === null || isText(call.turnId)) &&
  (call.parentId === null || isText(call.parentId)) &&
  Array.isArray(call.dependsOn) &&
  call.dependsOn.every(isText)

/** Checks a call at the door. Throws `InvalidInput`. */
export const parseCall = (input: unknown): Call => decodeOrThrow(CallSchema, 'call', input)

/** Tokens that a provider reported. Null fields were not reported. */
export interface Usage {
  /** Input tokens as the provider's limiter counts them. */
  readonly inputTokens: number | null
  readonly outputTokens: number | null
  /** All input tokens, those read from a cache included. Left out where nobody tells the two apart. */
  readonly allInputTokens?: number
  /** Of `allInputTokens`, those read from a cache. */
  readonly cacheReadTokens?: number
}
