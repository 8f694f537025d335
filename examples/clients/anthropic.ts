/** The `@anthropic-ai/sdk` package: a `fetch` with lanes, and the SDK's own retries off. */
import Anthropic, { RateLimitError } from '@anthropic-ai/sdk'
import { type LaneScope, lanedFetch } from 'rightofway'
import { type ExampleClient, weather } from './client.ts'

const model = 'emulator-large'
const tools: Anthropic.Tool[] = [
  {
    name: 'weather',
    description: 'The weather in a city',
    input_schema: { type: 'object', properties: { city: { type: 'string' } } },
  },
]

const textOf = ({ content }: Anthropic.Message): string =>
  content.map((block) => (block.type === 'text' ? block.text : '')).join('')

export const anthropicClient = (scope: LaneScope, address: string): ExampleClient => {
  const fetch = lanedFetch(scope)
  const anthropic = new Anthropic({ apiKey: 'sk-example', baseURL: address, maxRetries: 0, fetch })
  const request = (content: string) => ({
    model,
    max_tokens: 64,
    messages: [{ role: 'user' as const, content }],
  })
  return {
    plain: async (prompt, options) => textOf(await anthropic.messages.create(request(prompt), options)),
    stream: async function* (prompt, options) {
      const events = await anthropic.messages.create({ ...request(prompt), stream: true }, options)
      for await (const event of events)
        if (event.type === 'content_block_delta' && event.delta.type === 'text_delta') yield event.delta.text
    },
    toolLoop: async (prompt) => {
      const messages: Anthropic.MessageParam[] = [{ role: 'user', content: prompt }]
      for (;;) {
        const answer = await anthropic.messages.create({ model, max_tokens: 64, messages, tools })
        const uses = answer.content.filter((block) => block.type === 'tool_use')
        if (uses.length === 0) return textOf(answer)
        const results = uses.map(({ id, input }) => ({
          type: 'tool_result' as const,
          tool_use_id: id,
          content: weather((input as { city: string }).city),
        }))
        messages.push({ role: 'assistant', content: answer.content }, { role: 'user', content: results })
      }
    },
    isRateLimit: (error) => error instanceof RateLimitError,
  }
}
