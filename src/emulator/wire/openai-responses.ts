import type { Dialect, JsonObject, Reply } from './dialect.ts'
import { isCount } from './fields.ts'
import { openaiOverloaded, openaiVendor } from './openai-vendor.ts'
import { namedEvent } from './sse.ts'
import { textOf, wordAt } from './text.ts'

/** Events before the first token: their sequence numbers come before those of the tokens. */
const openingEvents = 4

/** `POST /v1/responses`, JSON and server-sent events. */
export const openaiResponses: Dialect = {
  vendor: openaiVendor,
  read: (body) => {
    const { model, input } = body
    if (typeof model !== 'string' || model === '') {
      return { field: 'model', message: "Missing required parameter: 'model'." }
    }
    if (typeof input !== 'string' && !Array.isArray(input)) {
      return { field: 'input', message: "Missing required parameter: 'input'." }
    }
    const maxOutputTokens = body['max_output_tokens'] ?? null
    if (maxOutputTokens !== null && !isCount(maxOutputTokens)) {
      return {
        field: 'max_output_tokens',
        message: "Invalid value for 'max_output_tokens': expected an integer of at least 1.",
      }
    }
    const stream = body['stream'] ?? false
    if (typeof stream !== 'boolean') {
      return { field: 'stream', message: "Invalid type for 'stream': expected a boolean." }
    }
    return { model, stream, maxOutputTokens, includeUsage: true }
  },
  whole: (reply) => finished(reply),
  opening: (reply) => {
    const begun = { ...response(reply), status: 'in_progress' }
    return (
      event('response.created', 0, { response: begun }) +
      event('response.in_progress', 1, { response: begun }) +
      event('response.output_item.added', 2, {
        output_index: 0,
        item: { ...item(reply, 'in_progress'), content: [] },
      }) +
      event('response.content_part.added', 3, { ...place(reply), part: part('') })
    )
  },
  token: (reply, index) =>
    event('response.output_text.delta', openingEvents + index, {
      ...place(reply),
      delta: wordAt(reply.dispatch, index),
      logprobs: [],
    }),
  closing: (reply) => {
    const text = textOf(reply.dispatch, reply.outputTokens)
    const next = openingEvents + reply.outputTokens
    const last = reply.truncated ? 'response.incomplete' : 'response.completed'
    return (
      event('response.output_text.done', next, { ...place(reply), text, logprobs: [] }) +
      event('response.content_part.done', next + 1, { ...place(reply), part: part(text) }) +
      event('response.output_item.done', next + 2, { output_index: 0, item: doneItem(reply) }) +
      event(last, next + 3, { response: finished(reply) })
    )
  },
  brokenOff: (_reply, sent) => event('error', openingEvents + sent, { error: openaiOverloaded }),
}

const event = (type: string, sequence: number, data: JsonObject): string =>
  namedEvent(type, { type, sequence_number: sequence, ...data })

const place = (reply: Reply): JsonObject => ({
  item_id: `msg_emulator_${reply.dispatch}`,
  output_index: 0,
  content_index: 0,
})

const part = (text: string): JsonObject => ({ type: 'output_text', text, annotations: [], logprobs: [] })

const item = (reply: Reply, status: string): JsonObject => ({
  id: `msg_emulator_${reply.dispatch}`,
  type: 'message',
  status,
  role: 'assistant',
})

const doneItem = (reply: Reply): JsonObject => ({
  ...item(reply, reply.truncated ? 'incomplete' : 'completed'),
  content: [part(textOf(reply.dispatch, reply.outputTokens))],
})

/** The response object before it has output. */
const response = (reply: Reply): JsonObject => ({
  id: `resp_emulator_${reply.dispatch}`,
  object: 'response',
  created_at: Math.floor(reply.createdAtMs / 1_000),
  status: 'in_progress',
  background: false,
  error: null,
  incomplete_details: null,
  instructions: null,
  max_output_tokens: reply.maxOutputTokens,
  metadata: {},
  model: reply.model,
  output: [],
  parallel_tool_calls: true,
  previous_response_id: null,
  reasoning: { effort: null, summary: null },
  service_tier: 'default',
  store: false,
  temperature: 1,
  text: { format: { type: 'text' } },
  tool_choice: 'auto',
  tools: [],
  top_p: 1,
  truncation: 'disabled',
  usage: null,
  user: null,
})

const finished = (reply: Reply): JsonObject => ({
  ...response(reply),
  status: reply.truncated ? 'incomplete' : 'completed',
  incomplete_details: reply.truncated ? { reason: 'max_output_tokens' } : null,
  output: [doneItem(reply)],
  usage: {
    input_tokens: reply.inputTokens,
    input_tokens_details: { cached_tokens: 0 },
    output_tokens: reply.outputTokens,
    output_tokens_details: { reasoning_tokens: 0 },
    total_tokens: reply.inputTokens + reply.outputTokens,
  },
})
