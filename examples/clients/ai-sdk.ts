/** The `ai` package with any of its providers: a model with lanes. Its retries are off by themselves. */
import { createAnthropic } from '@ai-sdk/anthropic'
import { APICallError, generateText, jsonSchema, stepCountIs, streamText, tool } from 'ai'
import { type LaneScope, lanedModel } from 'rightofway'
import { type ExampleClient, weather } from './client.ts'

const maxOutputTokens = 64

export const aiSdkClient = (scope: LaneScope, address: string): ExampleClient => {
  const provider = createAnthropic({ apiKey: 'sk-example', baseURL: `${address}/v1` })
  const model = lanedModel(provider('emulator-large'), scope)
  const abortable = (signal: AbortSignal | undefined) => (signal === undefined ? {} : { abortSignal: signal })
  return {
    plain: async (prompt, { signal } = {}) =>
      (await generateText({ model, prompt, maxOutputTokens, ...abortable(signal) })).text,
    stream: async function* (prompt, { signal } = {}) {
      let failure: unknown = null
      const onError = ({ error }: { error: unknown }) => {
        failure = error
      }
      yield* streamText({ model, prompt, maxOutputTokens, onError, ...abortable(signal) }).textStream
      signal?.throwIfAborted()
      if (failure !== null) throw failure
    },
    toolLoop: async (prompt) => {
      const inputSchema = jsonSchema<{ city: string }>({
        type: 'object',
        properties: { city: { type: 'string' } },
      })
      const tools = {
        weather: tool({ description: 'The weather', inputSchema, execute: ({ city }) => weather(city) }),
      }
      return (await generateText({ model, prompt, maxOutputTokens, tools, stopWhen: stepCountIs(4) })).text
    },
    isRateLimit: (error) => APICallError.isInstance(error) && error.statusCode === 429 && !error.isRetryable,
  }
}
