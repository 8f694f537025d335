import type { LimitFact, Refusal } from '../rules/rule.ts'

export type JsonObject = Readonly<Record<string, unknown>>
export type HeaderFields = Readonly<Record<string, string>>

/** An answer that is sent whole. */
export interface Answer {
  readonly status: number
  readonly headers: HeaderFields
  readonly body: JsonObject
}

/** The fields of a request body that the emulator uses. The rest is dropped. */
export interface WireRequest {
  readonly model: string
  readonly stream: boolean
  /** The caller's limit, tokens; null when the request states none. */
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
  /** The caller's limit ended the answer. */
  readonly truncated: boolean
  readonly includeUsage: boolean
}

/** The parts that one vendor sends around every answer, on every endpoint. */
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
  /** The provider's own failure, for an in-stream error that was asked for on an answer without a stream. */
  failed(requestId: string): Answer
  models(ids: readonly string[]): JsonObject
}

/** One endpoint that generates: the form of its requests and answers. All text, no I/O. */
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
  /** Stream events of an overload after `sent` tokens. The stream ends with them. */
  brokenOff(reply: Reply, sent: number): string
}
