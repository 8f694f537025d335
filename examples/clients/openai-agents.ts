/** The `@openai/agents` package: its models take a client of `openai`, which takes a `fetch` with lanes. */
import { Agent, OpenAIChatCompletionsModel, run, setTracingDisabled, tool } from '@openai/agents'
import OpenAI, { RateLimitError } from 'openai'
import { type LaneScope, lanedFetch } from 'rightofway'
import { z } from 'zod'
import { type ExampleClient, weather } from './client.ts'

export const agentsClient = (scope: LaneScope, address: string): ExampleClient => {
  setTracingDisabled(true)
  const fetch = lanedFetch(scope)
  const openai = new OpenAI({ apiKey: 'sk-example', baseURL: `${address}/v1`, maxRetries: 0, fetch })
  const model = new OpenAIChatCompletionsModel(openai as never, 'emulator-large')
  const agent = new Agent({ name: 'reader', model })
  const agentWithTools = new Agent({
    name: 'forecaster',
    model,
    tools: [
      tool({
        name: 'weather',
        description: 'The weather in a city',
        parameters: z.object({ city: z.string() }),
        execute: ({ city }) => weather(city),
      }),
    ],
  })
  const abortable = (signal: AbortSignal | undefined) => (signal === undefined ? {} : { signal })
  return {
    plain: async (prompt, { signal } = {}) => (await run(agent, prompt, abortable(signal))).finalOutput ?? '',
    stream: async function* (prompt, { signal } = {}) {
      const running = await run(agent, prompt, { stream: true, ...abortable(signal) })
      yield* running.toTextStream() as AsyncIterable<string>
      await running.completed
      signal?.throwIfAborted()
    },
    toolLoop: async (prompt) => (await run(agentWithTools, prompt)).finalOutput ?? '',
    isRateLimit: (error) => error instanceof RateLimitError,
  }
}
