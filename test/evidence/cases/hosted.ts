import { type EvidenceCase, given, oai } from './case.ts'

export const hostedCases: ReadonlyArray<EvidenceCase> = [
  given(
    'a minute, while its headers count days',
    'groq 429',
    {
      headers: {
        'retry-after': '3',
        'x-ratelimit-remaining-requests': '900',
        'x-ratelimit-reset-requests': '1m26s',
      },
      body: oai(
        'Rate limit reached for model `m-8b` on requests per minute (RPM): Limit 20, Used 20, Requested 1. Please try again in 2.9s.',
        'rate_limit_exceeded',
        'requests',
      ),
    },
    ['requests-per-minute', 'model', true, 3000],
  ),
  given(
    'no words, and the day is used up',
    'groq 429',
    {
      headers: { 'x-ratelimit-remaining-requests': '0', 'x-ratelimit-reset-requests': '2h0m5s' },
      body: oai('Rate limit reached'),
    },
    ['requests-per-day', 'model', true, 7_205_000],
  ),
  given(
    'above the budget of a minute, as a 413',
    'groq 413',
    {
      body: oai(
        'Request too large for model `m-70b` on tokens per minute (TPM): Limit 7000, Requested 18000, please reduce your message size and try again.',
        'rate_limit_exceeded',
        'tokens',
      ),
    },
    ['tokens-per-minute', 'model', false, null, { limit: 7000, requested: 18_000 }],
  ),
  given(
    'the flex tier gives way',
    'groq 498',
    { body: oai('flex tier capacity exceeded', 'capacity_exceeded') },
    ['overloaded', 'model', true, null],
  ),
  given(
    'a numeric code without a dimension',
    'mistral 429',
    { body: { object: 'error', message: 'Rate limit exceeded', type: 'rate_limited', code: '1300' } },
    ['unknown-rate-limit', 'credential', true, null],
  ),
  given(
    'a requests limit of the workspace',
    'mistral 429',
    { body: { object: 'error', message: 'Requests rate limit exceeded', type: 'rate_limited', code: 1300 } },
    ['requests-per-minute', 'credential', true, null],
  ),
  given(
    'tokens by the size headers',
    'mistral 429',
    {
      headers: {
        'ratelimitbysize-remaining': '0',
        'ratelimitbysize-limit': '500000',
        'ratelimitbysize-reset': '27',
      },
      body: { object: 'error', message: 'Rate limit exceeded', code: '1300' },
    },
    ['tokens-per-minute', 'model', true, 27_000],
  ),
  given(
    'capacity of a tier',
    'mistral 429',
    {
      body: {
        object: 'error',
        message: 'Service tier capacity exceeded for this model.',
        type: 'service_tier_capacity_exceeded',
        code: '3505',
      },
    },
    ['overloaded', 'model', true, null],
  ),
  given(
    'a dynamic limit on requests',
    'together 429',
    {
      headers: { 'x-ratelimit-reset': '2', 'x-ratelimit-remaining': '0' },
      body: { error: { message: 'Refused by dynamic limiting' }, error_type: 'dynamic_request_limited' },
    },
    ['requests-per-minute', 'model', true, 2000],
  ),
  given(
    'two ceilings in one breath',
    'together 429',
    {
      body: oai(
        'The maximum rate limit for this model is 12.0 queries and 240000 tokens per minute.',
        null,
        'model_rate_limit',
      ),
    },
    ['unknown-rate-limit', 'model', true, null],
  ),
  given(
    'below its own capacity',
    'together 503',
    { body: oai('Unable to serve right now.', null, 'service_unavailable') },
    ['overloaded', 'model', true, null],
  ),
  given(
    'suspended',
    'fireworks 412',
    { body: { error: { message: 'Account team-1 is suspended', code: 'PRECONDITION_FAILED' } } },
    ['quota-exhausted', 'credential', false, null],
  ),
  given(
    'over a dynamic limit and refused',
    'fireworks 429',
    {
      headers: { 'x-ratelimit-over-limit': 'yes', 'x-ratelimit-remaining-tokens-generated': '0' },
      body: oai('Rate limit exceeded'),
    },
    ['output-tokens-per-minute', 'model', true, null],
  ),
  given(
    'over a dynamic limit and served',
    'fireworks 200',
    {
      headers: { 'x-ratelimit-over-limit': 'yes', 'x-ratelimit-remaining-requests': '0' },
      body: { choices: [{ message: { content: 'ok' } }] },
    },
    ['not-capacity', 'model', true, null],
  ),
  given('a pool that is full', 'deepseek 503', { body: oai('Server overloaded, please try again later.') }, [
    'overloaded',
    'provider',
    true,
    null,
  ]),
  given('no balance', 'deepseek 402', { body: oai('Insufficient Balance', 'invalid_request_error') }, [
    'quota-exhausted',
    'credential',
    false,
    null,
  ]),
  given('comments while it queues', 'deepseek 200', { body: ': keep-alive\n\n: keep-alive\n\n' }, [
    'not-capacity',
    'model',
    true,
    null,
  ]),
  given(
    'a queue that is full',
    'vllm 503',
    { body: oai('in-flight requests exceed max_num_queued_reqs=32', null, 'ServiceUnavailableError') },
    ['overloaded', 'provider', true, null],
  ),
]
