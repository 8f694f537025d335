import type { LimitFact, Refusal } from '../rules/rule.ts'

export type JsonObject = Readonly<Record<string, unknown>>
export type HeaderFields = Readonly<Record<string, string>>

/** An answer that is sent whole. */
export interface Answer {
  readonly status: number
  readonly headers: HeaderFields
  readonly body: JsonObject
}

/** What the emulator needs to know of a request body. The rest is forgotten. */
export interface WireRequest {
  readonly model: string
  readonly stream: boolean
  /** What the caller allows, tokens; null when it does not say. */
  readonly maxOutputTokens: number | null
  /** Ask for usage at the end of a stream (OpenAI Chat Completions). */
  readonly includeUsage: boolean
}

export interface InvalidField {
  /** The field, as the vendor names it in errors. */
  readonly field: string
  readonly message: string
}

/** An accepted call's answer, before it is written. */
export interface Reply {
  readonly requestId: string
  /** Names the made-up text. */
  readonly dispatch: number
  readonly model: string
  readonly createdAtMs: number
  readonly inputTokens: number
  readonly outputTokens: number
  readonly maxOutputTokens: number | null
  /** The answer ends at the caller's limit, not by itself. */
  readonly truncated: boolean
  readonly includeUsage: boolean
}

/** What one vendor sends around every answer, whichever endpoint. */
export interface Vendor {
  /** Whether the request carries a key, any key. */
  hasKey(headers: Readonly<Record<string, unknown>>): boolean
  /** Header fields of every answer; resets may be relative to `atMs`. */
  headers(facts: readonly LimitFact[], requestId: string, atMs: number): HeaderFields
  /** A refusal by a limit rule. */
  refused(refusal: Refusal, model: string, requestId: string, atMs: number): Answer
  unauthenticated(requestId: string): Answer
  badJson(requestId: string): Answer
  badField(invalid: InvalidField, requestId: string): Answer
  tooLarge(requestId: string): Answer
  notFound(path: string, requestId: string): Answer
  /** The provider's own failure, for an error that was asked to come inside a stream that is none. */
  failed(requestId: string): Answer
  models(ids: readonly string[]): JsonObject
}

/** One endpoint that generates: how it is asked and how it answers. All text, no I/O. */
export interface Dialect {
  readonly vendor: Vendor
  read(body: JsonObject): WireRequest | InvalidField
  /** The answer in one body. */
  whole(reply: Reply): JsonObject
  /** Stream events before the first token. */
  opening(reply: Reply): string
  /** Stream events of the token with this index, from 0. */
  token(reply: Reply, index: number): string
  /** Stream events after the last token. */
  closing(reply: Reply): string
  /** Stream events of an overload after `sent` tokens: the last thing that the stream says. */
  brokenOff(reply: Reply, sent: number): string
}
