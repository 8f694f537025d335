import { anthropicVendor } from './anthropic-vendor.ts'
import type { Dialect, InvalidField, JsonObject, Reply, WireRequest } from './dialect.ts'
import { isCount, isObject } from './fields.ts'
import { namedEvent } from './sse.ts'
import { textOf, wordAt } from './text.ts'

/** `POST /v1/messages`, JSON and server-sent events. */
export const anthropicMessages: Dialect = {
  vendor: anthropicVendor,
  read: (body) => {
    const invalid = readPrompt(body)
    if (invalid !== null) return invalid
    const maxTokens = body['max_tokens']
    if (maxTokens === undefined) return { field: 'max_tokens', message: 'Field required' }
    if (!isCount(maxTokens)) {
      return { field: 'max_tokens', message: 'Input should be a valid integer greater than or equal to 1' }
    }
    const stream = body['stream'] ?? false
    if (typeof stream !== 'boolean') return { field: 'stream', message: 'Input should be a valid boolean' }
    return request(body, stream, maxTokens)
  },
  whole: (reply) => ({
    ...message(reply),
    content: [{ type: 'text', text: textOf(reply.dispatch, reply.outputTokens) }],
    stop_reason: stopReason(reply),
    usage: usage(reply, reply.outputTokens),
  }),
  opening: (reply) =>
    namedEvent('message_start', { type: 'message_start', message: message(reply) }) +
    namedEvent('content_block_start', {
      type: 'content_block_start',
      index: 0,
      content_block: { type: 'text', text: '' },
    }) +
    namedEvent('ping', { type: 'ping' }),
  token: (reply, index) =>
    namedEvent('content_block_delta', {
      type: 'content_block_delta',
      index: 0,
      delta: { type: 'text_delta', text: wordAt(reply.dispatch, index) },
    }),
  closing: (reply) =>
    namedEvent('content_block_stop', { type: 'content_block_stop', index: 0 }) +
    namedEvent('message_delta', {
      type: 'message_delta',
      delta: { stop_reason: stopReason(reply), stop_sequence: null },
      usage: usage(reply, reply.outputTokens),
    }) +
    namedEvent('message_stop', { type: 'message_stop' }),
  brokenOff: () =>
    namedEvent('error', {
      type: 'error',
      error: { details: null, type: 'overloaded_error', message: 'Overloaded' },
    }),
}

/** Reads the fields that `POST /v1/messages/count_tokens` needs. */
export const readCountTokens = (body: JsonObject): WireRequest | InvalidField =>
  readPrompt(body) ?? request(body, false, null)

const request = (body: JsonObject, stream: boolean, maxOutputTokens: number | null): WireRequest => ({
  model: String(body['model']),
  stream,
  maxOutputTokens,
  includeUsage: true,
})

const readPrompt = (body: JsonObject): InvalidField | null => {
  const { model, messages } = body
  if (model === undefined) return { field: 'model', message: 'Field required' }
  if (typeof model !== 'string' || model === '') {
    return { field: 'model', message: 'Input should be a valid string' }
  }
  if (messages === undefined) return { field: 'messages', message: 'Field required' }
  if (!Array.isArray(messages) || !messages.every(isObject)) {
    return { field: 'messages', message: 'Input should be a valid list' }
  }
  return messages.length === 0 ? { field: 'messages', message: 'at least one message is required' } : null
}

const stopReason = (reply: Reply): string => (reply.truncated ? 'max_tokens' : 'end_turn')

/** The message at the start of a stream: no content, and the one token that real streams count there. */
const message = (reply: Reply): JsonObject => ({
  id: `msg_emulator_${reply.dispatch}`,
  type: 'message',
  role: 'assistant',
  model: reply.model,
  content: [],
  stop_reason: null,
  stop_sequence: null,
  usage: usage(reply, Math.min(1, reply.outputTokens)),
})

const usage = (reply: Reply, outputTokens: number): JsonObject => ({
  input_tokens: reply.inputTokens,
  cache_creation_input_tokens: 0,
  cache_read_input_tokens: 0,
  output_tokens: outputTokens,
  service_tier: 'standard',
})
