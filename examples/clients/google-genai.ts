/** The `@google/genai` package: its calls run under a permit, whose signal ends them. */
import { ApiError, type Content, type GenerateContentConfig, GoogleGenAI, Type } from '@google/genai'
import { AttemptsExhausted, type CallRequest, currentCall, type LaneScope } from 'rightofway'
import { type AskOptions, type ExampleClient, weather } from './client.ts'

const model = 'gemini-emulated'
const tools: NonNullable<GenerateContentConfig['tools']> = [
  {
    functionDeclarations: [
      {
        name: 'weather',
        description: 'The weather in a city',
        parameters: { type: Type.OBJECT, properties: { city: { type: Type.STRING } } },
      },
    ],
  },
]

export const genaiClient = (scope: LaneScope, address: string): ExampleClient => {
  const ai = new GoogleGenAI({ apiKey: 'example', httpOptions: { baseUrl: address } })
  const request = ({ signal }: AskOptions = {}): CallRequest => ({
    ...currentCall(),
    ...(signal === undefined ? {} : { signal }),
  })
  const ask = (contents: Content[] | string, options?: AskOptions, config: GenerateContentConfig = {}) =>
    scope.run(request(options), ({ signal }) =>
      ai.models.generateContent({ model, contents, config: { ...config, abortSignal: signal } }),
    )
  return {
    plain: async (prompt, options) => (await ask(prompt, options)).text ?? '',
    stream: async function* (prompt, options) {
      const chunks = await scope.run(request(options), ({ signal }) =>
        ai.models.generateContentStream({ model, contents: prompt, config: { abortSignal: signal } }),
      )
      for await (const chunk of chunks) yield chunk.text ?? ''
    },
    toolLoop: async (prompt) => {
      const contents: Content[] = [{ role: 'user', parts: [{ text: prompt }] }]
      for (;;) {
        const answer = await ask(contents, {}, { tools })
        const calls = answer.functionCalls ?? []
        if (calls.length === 0) return answer.text ?? ''
        contents.push(answer.candidates?.[0]?.content as Content)
        for (const { name = '', args } of calls) {
          const response = { output: weather(String(args?.['city'])) }
          contents.push({ role: 'user', parts: [{ functionResponse: { name, response } }] })
        }
      }
    },
    isRateLimit: (error) =>
      error instanceof AttemptsExhausted && error.cause instanceof ApiError && error.cause.status === 429,
  }
}
