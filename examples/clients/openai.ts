/** The `openai` package: a `fetch` with lanes, and the SDK's own retries off. */
import OpenAI, { RateLimitError } from 'openai'
import { type LaneScope, lanedFetch } from 'rightofway'
import { type ExampleClient, weather } from './client.ts'

const model = 'emulator-large'

export const openaiClient = (scope: LaneScope, address: string): ExampleClient => {
  const fetch = lanedFetch(scope)
  const openai = new OpenAI({ apiKey: 'sk-example', baseURL: `${address}/v1`, maxRetries: 0, fetch })
  const messages = (content: string) => [{ role: 'user' as const, content }]
  return {
    plain: async (prompt, options) => {
      const answer = await openai.chat.completions.create({ model, messages: messages(prompt) }, options)
      return answer.choices[0]?.message.content ?? ''
    },
    stream: async function* (prompt, options) {
      const request = {
        model,
        messages: messages(prompt),
        stream: true,
        stream_options: { include_usage: true },
      } as const
      for await (const { choices } of await openai.chat.completions.create(request, options))
        yield choices[0]?.delta.content ?? ''
    },
    toolLoop: async (prompt) => {
      const runner = openai.chat.completions.runTools({
        model,
        messages: messages(prompt),
        tools: [
          {
            type: 'function',
            function: {
              name: 'weather',
              description: 'The weather in a city',
              parameters: { type: 'object', properties: { city: { type: 'string' } } },
              parse: JSON.parse as (text: string) => { city: string },
              function: ({ city }: { city: string }) => weather(city),
            },
          },
        ],
      })
      return (await runner.finalContent()) ?? ''
    },
    isRateLimit: (error) => error instanceof RateLimitError,
  }
}
