/** What a cache served counts as the scope's charges say, whichever way the usage came in. */
import { describe, expect, it } from 'vitest'
import { kernelOf } from '../../src/host/internal.ts'
import { type CallRequest, type LaneScope, lanedFetch, openHost, type Usage } from '../../src/index.ts'

const answer = {
  type: 'message',
  usage: { input_tokens: 100, cache_read_input_tokens: 900, output_tokens: 5 },
}
const stated: Usage = { inputTokens: 100, outputTokens: 5, allInputTokens: 1_000, cacheReadTokens: 900 }

const chunks = async function* (): AsyncGenerator<object> {
  yield { type: 'message_start', message: answer }
  yield { type: 'message_delta', delta: {}, usage: { output_tokens: 5 } }
  yield { type: 'message_stop' }
}

const ways: ReadonlyArray<readonly [string, (scope: LaneScope, request: CallRequest) => Promise<unknown>]> = [
  ['an answer that run gave', (scope, request) => scope.run(request, () => answer)],
  [
    'a stream that run gave',
    async (scope, request) => {
      for await (const _ of await scope.run(request, chunks));
    },
  ],
  [
    'an answer through lanedFetch',
    async (scope, request) => {
      const fetch = lanedFetch(scope, { fetch: async () => Response.json(answer), call: () => request })
      await (await fetch('http://127.0.0.1:1/v1/messages', { method: 'POST', body: '{}' })).text()
    },
  ],
  [
    'a permit that its holder settles',
    async (scope, request) => {
      const permit = await scope.admit(request)
      permit.settle({ outcome: 'completed', usage: stated })
    },
  ],
]

describe.each(ways)('%s', (_, send) => {
  it('keeps the tokens that the cache served apart', async () => {
    const host = await openHost()
    const usages: Array<Usage | undefined> = []
    kernelOf(host).observe(({ event }) => {
      if (event.type === 'call.settled') usages.push(event.usage)
    })
    await send(host.scope('anthropic/k/m'), {})
    await host.close()
    expect(usages).toEqual([stated])
  })
})
