import { claudeLimit, type EvidenceCase, given, type Reading, sse } from './case.ts'

const deep = claudeLimit('21,000 output tokens per minute')
const output: Reading = [
  'output-tokens-per-minute',
  'model',
  true,
  null,
  { limit: 21_000, unit: 'output_tokens_per_minute' },
]
const pythonRepr =
  "{'error': {'message': 'Rate limit reached for test-5o on tokens per min (TPM): Limit 50, Used 49, Requested 3. Please try again in 2s.', 'type': 'tokens', 'param': None, 'code': 'rate_limit_exceeded'}}"
const tokens: Reading = ['tokens-per-minute', 'model', true, 2000, { limit: 50, used: 49, requested: 3 }]

export const wrappingCases: ReadonlyArray<EvidenceCase> = [
  given('JSON as text', 'anthropic 429', { body: JSON.stringify(deep) }, output),
  given('JSON in a JSON string', 'proxy 429', { body: JSON.stringify(JSON.stringify(deep)) }, output),
  given(
    'JSON in a message',
    'proxy 502',
    { body: { error: { message: JSON.stringify(deep), code: 502 } } },
    output,
  ),
  given(
    'JSON in a message in a message',
    'proxy 500',
    { body: { message: JSON.stringify({ error: { message: JSON.stringify(deep) } }) } },
    output,
  ),
  given(
    'prose around it',
    'litellm 429',
    { body: `litellm.RateLimitError: AnthropicException - ${JSON.stringify(deep)}. Attempt #2 of 4` },
    output,
  ),
  given(
    'prose, and quotes escaped once more',
    'proxy 500',
    { body: `upstream said: ${JSON.stringify(JSON.stringify(deep)).slice(1, -1)}` },
    output,
  ),
  given(
    'a byte string of Python',
    'litellm 429',
    {
      body: `litellm.RateLimitError: AnthropicException - b'${JSON.stringify(deep).replaceAll("'", "\\'")}'`,
    },
    output,
  ),
  given(
    'a client library that prints the status first',
    'proxy 500',
    { body: `429 ${JSON.stringify(deep)}` },
    output,
  ),
  given(
    'a status that the proxy changed, and a body under raw',
    'proxy 422',
    { body: { status: 'error', error: 'empty answer', raw: deep } },
    output,
  ),
  given(
    'a body that a client library keeps as text',
    'proxy 429',
    { body: { data: JSON.stringify([deep]) } },
    output,
  ),
  given('a list', 'proxy 429', { body: [deep] }, output),
  given(
    'an event',
    'anthropic 200',
    { body: sse(['message_start', { type: 'message_start', message: {} }], ['error', deep]) },
    output,
  ),
  given('an event without its name', 'proxy 200', { body: sse(['', deep]) }, output),
  given(
    'an event in CRLF, behind comments',
    'proxy 200',
    { body: `: hello\r\n\r\nevent: error\r\ndata: ${JSON.stringify(deep)}\r\n\r\n` },
    output,
  ),
  given(
    'a response and a status of its own',
    'proxy 200',
    { body: { success: false, errors: [deep] } },
    output,
  ),
  given(
    'the error of a choice',
    'openrouter 200',
    { body: { choices: [{ error: deep, message: { content: '' } }] } },
    output,
  ),
  given('a Python repr', 'proxy 500', { body: `OpenAIException - Error code: 429 - ${pythonRepr}` }, tokens),
  given(
    'a Python repr that a log cut off',
    'proxy 500',
    { body: `Error code: 429 - ${pythonRepr.slice(0, -60)}` },
    tokens,
  ),
  given(
    'a key of an envelope nobody knows',
    'nobody 500',
    { body: { fault: { detail: { error: deep } } } },
    output,
  ),
  given(
    'nothing but the sentence, under a wrong status',
    'proxy 500',
    {
      body: 'This request would exceed the rate limit for your organization (org-a) of 21,000 output tokens per minute.',
    },
    output,
  ),
]
