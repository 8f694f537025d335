import type { JsonObject } from './dialect.ts'

/** A server-sent event with a name, as Anthropic and OpenAI Responses send it. */
export const namedEvent = (name: string, data: JsonObject): string =>
  `event: ${name}\ndata: ${JSON.stringify(data)}\n\n`

/** A server-sent event without a name, as OpenAI Chat Completions sends it. */
export const dataEvent = (data: JsonObject): string => `data: ${JSON.stringify(data)}\n\n`
