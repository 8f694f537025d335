import type { Dialect, JsonObject, Reply } from './dialect.ts'
import { isCount, isObject } from './fields.ts'
import { openaiOverloaded, openaiVendor } from './openai-vendor.ts'
import { dataEvent } from './sse.ts'
import { textOf, wordAt } from './text.ts'

/** `POST /v1/chat/completions`, JSON and server-sent events. */
export const openaiChat: Dialect = {
  vendor: openaiVendor,
  read: (body) => {
    const { model, messages } = body
    if (typeof model !== 'string' || model === '') {
      return { field: 'model', message: 'you must provide a model parameter' }
    }
    if (!Array.isArray(messages) || messages.length === 0 || !messages.every(isObject)) {
      return { field: 'messages', message: "Missing required parameter: 'messages'." }
    }
    const field = body['max_completion_tokens'] === undefined ? 'max_tokens' : 'max_completion_tokens'
    const maxOutputTokens = body[field] ?? null
    if (maxOutputTokens !== null && !isCount(maxOutputTokens)) {
      return { field, message: `Invalid value for '${field}': expected an integer of at least 1.` }
    }
    const stream = body['stream'] ?? false
    if (typeof stream !== 'boolean') {
      return { field: 'stream', message: "Invalid type for 'stream': expected a boolean." }
    }
    const options = body['stream_options']
    const includeUsage = isObject(options) && options['include_usage'] === true
    return { model, stream, maxOutputTokens, includeUsage }
  },
  whole: (reply) => ({
    ...completion(reply, 'chat.completion'),
    choices: [
      {
        index: 0,
        message: {
          role: 'assistant',
          content: textOf(reply.dispatch, reply.outputTokens),
          refusal: null,
          annotations: [],
        },
        logprobs: null,
        finish_reason: finishReason(reply),
      },
    ],
    usage: usage(reply),
  }),
  opening: (reply) => chunk(reply, { role: 'assistant', content: '', refusal: null }, null),
  token: (reply, index) => chunk(reply, { content: wordAt(reply.dispatch, index) }, null),
  closing: (reply) =>
    chunk(reply, {}, finishReason(reply)) +
    (reply.includeUsage
      ? dataEvent({ ...completion(reply, 'chat.completion.chunk'), choices: [], usage: usage(reply) })
      : '') +
    'data: [DONE]\n\n',
  brokenOff: () => dataEvent({ error: openaiOverloaded }),
}

const completion = (reply: Reply, object: string): JsonObject => ({
  id: `chatcmpl-emulator-${reply.dispatch}`,
  object,
  created: Math.floor(reply.createdAtMs / 1_000),
  model: reply.model,
  service_tier: 'default',
  system_fingerprint: null,
})

const chunk = (reply: Reply, delta: JsonObject, finish: string | null): string =>
  dataEvent({
    ...completion(reply, 'chat.completion.chunk'),
    choices: [{ index: 0, delta, logprobs: null, finish_reason: finish }],
    // Null in every chunk but the last when usage was asked for, absent when it was not.
    ...(reply.includeUsage ? { usage: null } : {}),
  })

const finishReason = (reply: Reply): string => (reply.truncated ? 'length' : 'stop')

const usage = (reply: Reply): JsonObject => ({
  prompt_tokens: reply.inputTokens,
  completion_tokens: reply.outputTokens,
  total_tokens: reply.inputTokens + reply.outputTokens,
  prompt_tokens_details: { cached_tokens: 0, audio_tokens: 0 },
  completion_tokens_details: {
    reasoning_tokens: 0,
    audio_tokens: 0,
    accepted_prediction_tokens: 0,
    rejected_prediction_tokens: 0,
  },
})
