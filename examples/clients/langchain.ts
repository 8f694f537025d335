/** LangChain.js: the fields of `langChainLanes` switch off its retries and give its client a `fetch` with lanes. */
import { HumanMessage, type ToolMessage } from '@langchain/core/messages'
import { tool } from '@langchain/core/tools'
import { ChatOpenAI } from '@langchain/openai'
import { RateLimitError } from 'openai'
import { type LaneScope, langChainLanes } from 'rightofway'
import { z } from 'zod'
import { type ExampleClient, weather } from './client.ts'

export const langChainClient = (scope: LaneScope, address: string): ExampleClient => {
  const lanes = langChainLanes(scope)
  const model = new ChatOpenAI({
    model: 'emulator-large',
    apiKey: 'sk-example',
    ...lanes,
    configuration: { ...lanes.configuration, baseURL: `${address}/v1` },
  })
  const forecast = tool(({ city }: { city: string }) => weather(city), {
    name: 'weather',
    description: 'The weather in a city',
    schema: z.object({ city: z.string() }),
  })
  return {
    plain: async (prompt, options) => (await model.invoke(prompt, options)).text,
    stream: async function* (prompt, options) {
      for await (const chunk of await model.stream(prompt, options)) yield chunk.text
    },
    toolLoop: async (prompt) => {
      const withTools = model.bindTools([forecast])
      const messages: Array<HumanMessage | ToolMessage | Awaited<ReturnType<typeof model.invoke>>> = [
        new HumanMessage(prompt),
      ]
      for (;;) {
        const answer = await withTools.invoke(messages)
        messages.push(answer)
        if ((answer.tool_calls ?? []).length === 0) return answer.text
        for (const call of answer.tool_calls ?? []) messages.push(await forecast.invoke(call as never))
      }
    },
    isRateLimit: (error) => error instanceof RateLimitError,
  }
}
