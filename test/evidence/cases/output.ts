import { claude, type EvidenceCase, given, oai, sse } from './case.ts'

const quoted = JSON.stringify(claude('overloaded_error', 'Overloaded'))

export const outputCases: ReadonlyArray<EvidenceCase> = [
  given(
    'a completion about rate limits',
    'openai 200',
    {
      body: {
        choices: [
          {
            message: {
              content: `Rate limit reached on tokens per min (TPM): Limit 1, Used 1, Requested 1. ${quoted}`,
            },
          },
        ],
      },
    },
    ['not-capacity', 'model', true, null],
  ),
  given(
    'a message about rate limits',
    'anthropic 200',
    { body: { type: 'message', content: [{ type: 'text', text: quoted }] } },
    ['not-capacity', 'model', true, null],
  ),
  given(
    'a tool call with an error inside',
    'anthropic 200',
    {
      body: {
        type: 'message',
        content: [{ type: 'tool_use', input: { error: { type: 'overloaded_error' } } }],
      },
    },
    ['not-capacity', 'model', true, null],
  ),
  given(
    'deltas about rate limits',
    'anthropic 200',
    {
      body: sse(
        [
          'content_block_delta',
          {
            type: 'content_block_delta',
            delta: { type: 'text_delta', text: `event: error\ndata: ${quoted}\n\n` },
          },
        ],
        ['message_stop', { type: 'message_stop' }],
      ),
    },
    ['not-capacity', 'model', true, null],
  ),
  given(
    'chunks about rate limits',
    'openai 200',
    {
      body: sse([
        '',
        { choices: [{ delta: { content: 'slow_down insufficient_quota "error": {"code": 429}' } }] },
      ]),
    },
    ['not-capacity', 'model', true, null],
  ),
  given('a plain text that was served', 'proxy 200', { body: 'Error: rate limit of 5 requests per minute' }, [
    'not-capacity',
    'model',
    true,
    null,
  ]),
  given(
    'a response whose error is null',
    'openai 200',
    {
      body: {
        object: 'response',
        status: 'completed',
        error: null,
        output: [{ type: 'message', content: [{ text: 'overloaded_error' }] }],
      },
    },
    ['not-capacity', 'model', true, null],
  ),
]

/** Prose that holds single words of a refusal and is none. */
export const bareWordCases: ReadonlyArray<EvidenceCase> = [
  given(
    'the word quota',
    'proxy 400',
    { body: oai('The field quota is not allowed here', null, 'invalid_request_error') },
    ['not-capacity', 'model', false, null],
  ),
  given(
    'the word tokens',
    'proxy 400',
    { body: oai('max_tokens must be at least 1 token', null, 'invalid_request_error') },
    ['not-capacity', 'model', false, null],
  ),
  given('the number 429', 'proxy 400', { body: 'line 429: unexpected value' }, [
    'not-capacity',
    'model',
    false,
    null,
  ]),
  given(
    'a faulty request that quotes a refusal',
    'proxy 400',
    { body: oai('messages.0: unknown key "5 requests per minute"', null, 'invalid_request_error') },
    ['not-capacity', 'model', false, null],
  ),
  given(
    'a fault of the service',
    'proxy 500',
    { body: oai('Something went wrong, try again later', 'server_error') },
    ['not-capacity', 'provider', true, null],
  ),
]
