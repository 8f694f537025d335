import type { Evidence, Usage } from '../../../machines/index.ts'
import type { Usage as ReadUsage } from '../../evidence/index.ts'

/** The facts that the body of a success has told so far. */
export interface BodyReading {
  readonly usage: Usage | null
  /** The evidence of an error inside it; null while there is none. */
  readonly evidence: Evidence | null
  /** It began on a wire whose end is known, and ended without it. Meant only once the body is over. */
  readonly truncated: boolean
}

export const nothingRead: BodyReading = { usage: null, evidence: null, truncated: false }

/** Reads one successful answer on the side: never changes a byte, never keeps text. */
export interface BodyReader {
  push(chunk: Buffer): void
  /** The body is complete; `read` is called once all of it has been read, at once unless it is encoded. */
  end(read: () => void): void
  reading(): BodyReading
  /** The answer's own end has passed: the provider is done, whatever its connection does. */
  readonly done: boolean
  /** Something that can be judged is here: a first event, line or frame. Until then it may be a refusal. */
  readonly begun: boolean
  /** Bytes are there that nobody could read. */
  readonly unread: boolean
}

/** The part of a usage that the core reads; cache reads only where there were any. */
export const coreUsage = (usage: ReadUsage | null): Usage | null => {
  if (usage === null) return null
  const { inputTokens, allInputTokens, outputTokens, cacheReadTokens } = usage
  if (cacheReadTokens === 0) return { inputTokens, outputTokens }
  return { inputTokens, outputTokens, allInputTokens, cacheReadTokens }
}
