/** Requests as other clients send them: none has a mark of an agent, so each is an untagged call of its key and model. */
import { expect, it } from 'vitest'
import { parseConfig } from '../../../src/gateway/config/config.ts'
import { weigh } from '../../../src/gateway/identity/body-weight.ts'
import { makeBytesEstimator } from '../../../src/gateway/identity/estimator.ts'
import { explainRequest } from '../../../src/gateway/routing/explain.ts'
import { fingerprint } from '../../../src/index.ts'
import { secret } from '../setting.ts'
import type { Headers } from './agents.ts'

const json = { 'content-type': 'application/json' }
const bearer = { ...json, authorization: 'Bearer sk-example' }
const stainless = {
  'x-stainless-lang': 'python',
  'x-stainless-retry-count': '0',
  'x-stainless-timeout': '600',
}
/** 1,000 words of one token each, roughly. */
const words = 'word '.repeat(1_000)
const chat = (model: string) => ({ model, messages: [{ role: 'user', content: words }], stream: true })

it.each<[string, string, Headers, object, string, string]>([
  [
    "OpenAI's SDK",
    '/openai/v1/chat/completions',
    { ...bearer, ...stainless, 'user-agent': 'OpenAI/Python 2.1.0' },
    chat('gpt-5.4'),
    'openai',
    'gpt-5.4',
  ],
  [
    "OpenAI's SDK, responses",
    '/openai/v1/responses',
    { ...bearer, ...stainless },
    { model: 'gpt-5.4-2026-03-05', input: words },
    'openai',
    'gpt-5.4',
  ],
  [
    "Anthropic's SDK",
    '/anthropic/v1/messages',
    { ...json, ...stainless, 'x-api-key': 'sk-example', 'anthropic-version': '2023-06-01' },
    { ...chat('claude-sonnet-4-6'), max_tokens: 1_024 },
    'anthropic',
    'claude-sonnet-4',
  ],
  [
    'LangChain',
    '/openai/v1/chat/completions',
    { ...bearer, 'user-agent': 'langchain-openai/1.0' },
    { ...chat('gpt-4o'), n: 1, temperature: 0.7 },
    'openai',
    'gpt-4o',
  ],
  [
    'OpenHands, by LiteLLM',
    '/openai/v1/chat/completions',
    { ...bearer, 'user-agent': 'litellm/1.80' },
    { ...chat('openai/gpt-5.4'), tools: [] },
    'openai',
    'gpt-5.4',
  ],
  [
    'a JDK client',
    '/openai/v1/embeddings',
    { ...bearer, 'user-agent': 'Java-http-client/21', 'http2-settings': 'AAEAAEAAAAIAAAAA' },
    { model: 'text-embedding-3-small', input: words },
    'openai',
    'text-embedding-3-small',
  ],
])('%s', (_, target, headers, body, provider, model) => {
  const bytes = Buffer.from(JSON.stringify(body))
  const request = { method: 'POST', target, headers, body: bytes }
  const { call } = explainRequest(parseConfig(), request, secret)
  expect(call).toMatchObject({
    priorityClass: 'orchestration',
    lane: 'primary',
    principal: 'default',
    turnId: null,
    classifiedBy: null,
    scope: `${provider}/${fingerprint('sk-example', secret)}/${model}`,
  })
  const weight = weigh({ body: bytes, wire: 'openai', rule: 'text', contentType: 'application/json' })
  const estimate = makeBytesEstimator().estimate(weight, 's')
  expect(estimate).toBeGreaterThan(500)
  expect(estimate).toBeLessThan(2_000)
})
