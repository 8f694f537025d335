/**
 * The three stages of an answer: as received (`ProviderAnswer`), after unwrapping (`Signal`), and as one
 * provider's reader concludes (`Finding`). Only the edge knows these types; the core sees `Evidence`.
 */
import type { EvidenceFacts, EvidenceKind, EvidenceScope } from '../../machines/model/evidence.ts'
import type { Family } from './family.ts'
import type { HeaderBag } from './header-map.ts'
import type { LimitReading } from './headers.ts'

/** One answer of a provider or of a gateway in front of it, as received. */
export interface ProviderAnswer {
  /** Name of the lane's provider. Only a hint: the shape found inside the answer decides. */
  readonly provider: string
  /** HTTP status, [100, 599]. 0 when it is not known, as for a pasted body. */
  readonly status: number
  readonly headers: HeaderBag
  /** Parsed JSON, JSON text, event-stream text, decoded event frames, or any other text. */
  readonly body: unknown
  /** When the answer was received: epoch ms or ISO 8601. Without it, the answer's own `date` header counts. */
  readonly receivedAt?: number | string | undefined
}

export type JsonObject = Readonly<Record<string, unknown>>

/** An answer after unwrapping: every envelope opened, innermost findings first. */
export interface Signal {
  /** Family of the declared provider; null when its name is unknown or only a proxy. */
  readonly declared: Family | null
  /** Families that the answer itself names, such as `BedrockException` in a gateway's prefix. */
  readonly named: ReadonlyArray<Family>
  /**
   * The status that decides. A status inside the answer replaces an outer one that is a success or a
   * gateway's relabelling.
   */
  readonly status: number
  /** The answer is a refusal or a fault. False for a served answer, whatever its text says. */
  readonly isError: boolean
  /** Machine codes, types and reasons in snake case, innermost first. */
  readonly codes: ReadonlyArray<string>
  /** Error messages, innermost first, joined by newlines; at most `textCapChars` long. Never model output. */
  readonly text: string
  /** Error objects found during unwrapping, for readers that look for a named field. */
  readonly objects: ReadonlyArray<JsonObject>
  readonly headers: ReadonlyMap<string, string>
  /** Headers that a gateway copied into the body. */
  readonly innerHeaders: ReadonlyMap<string, string>
  /** Rate-limit windows of the outer headers. */
  readonly limits: ReadonlyArray<LimitReading>
  /** Epoch ms; null when neither the caller nor a `date` header states it. */
  readonly receivedAtMs: number | null
}

/** A reader's conclusion. The wait is read separately, so that its precedence is defined in one place. */
export interface Finding {
  readonly kind: EvidenceKind
  readonly scope: EvidenceScope
  readonly retryable: boolean
  readonly facts?: EvidenceFacts
  /** A wait that only this provider's reader can find; it ranks with the structured body. */
  readonly waitMs?: number | null
}

/** One provider's knowledge of its own answers. */
export interface ProviderReader {
  readonly family: Family
  /** Whether the shape alone identifies this provider, through any gateway. */
  readonly recognises: (signal: Signal) => boolean
  readonly read: (signal: Signal) => Finding | null
  /** The scope of an overload that states none. */
  readonly overloadScope: EvidenceScope
  /** The scope of a rate limit that names no dimension. */
  readonly rateLimitScope: EvidenceScope
}

export const isObject = (value: unknown): value is JsonObject => {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** Snake case of a machine code in any of its spellings: `ThrottlingException`, `MODEL_BUSY`, `x.y-z`. */
export const snakeCase = (code: string): string => {
  return code
    .slice(0, 120)
    .replace(/([a-z0-9])([A-Z])/g, '$1_$2')
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, '_')
    .replace(/^_|_$/g, '')
}

export const hasCode = (signal: Signal, pattern: RegExp): boolean => {
  return signal.codes.some((code) => pattern.test(code))
}
