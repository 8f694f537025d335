import { type EvidenceCase, given, oai, sse } from './case.ts'

export const azureCases: ReadonlyArray<EvidenceCase> = [
  given(
    'call rate limit is requests',
    'azure-openai 429',
    {
      headers: { 'Retry-After': '21' },
      body: oai(
        'Requests to the ChatCompletions_Create Operation have exceeded call rate limit of your current pricing tier. Please retry after 21 seconds.',
        '429',
      ),
    },
    ['requests-per-minute', 'model', true, 21_000],
  ),
  given(
    'token rate limit is tokens',
    'azure 429',
    {
      body: oai(
        'Your requests to test-5 for test-5 in West Nowhere have exceeded the token rate limit for your current pricing tier. Please retry after 2 seconds.',
        '429',
      ),
    },
    ['tokens-per-minute', 'model', true, 2000],
  ),
  given(
    'no dimension but an exhausted header',
    'azure 429',
    {
      headers: { 'retry-after-ms': '7300.5', 'x-ratelimit-remaining-requests': '0' },
      body: oai('Rate limit is exceeded.', '429'),
    },
    ['requests-per-minute', 'model', true, 7301],
  ),
  given(
    'a misspelt reset in plain seconds',
    'azure 429',
    {
      headers: { 'x-rate-limit-reset-tokens': '31' },
      body: oai('have exceeded token rate limit of your current OpenAI S0 pricing tier.', '429'),
    },
    ['tokens-per-minute', 'model', true, 31_000],
  ),
  given(
    'sentinels are not an exhausted window',
    'azure 429',
    {
      headers: {
        'x-ratelimit-remaining-requests': '-1',
        'x-ratelimit-limit-requests': '-1',
        'x-ratelimit-reset-requests': '0',
      },
      body: oai('Rate limit is exceeded.', '429'),
    },
    ['unknown-rate-limit', 'model', true, null],
  ),
  given(
    'a debt on a streamed refusal',
    'azure 200',
    {
      headers: { 'retry-after': '9', 'x-ratelimit-remaining-tokens': '-512' },
      body: sse([
        'error',
        { type: 'error', code: 'rate_limit_exceeded', message: 'Your requests have exceeded rate limit.' },
      ]),
    },
    ['tokens-per-minute', 'model', true, 9000],
  ),
  given(
    'an allowance of the gateway that renews',
    'azure 403',
    {
      body: {
        statusCode: 403,
        message: 'Out of call volume quota. Quota will be replenished in 2.03:04:05.',
      },
    },
    ['quota-exhausted', 'credential', true, 183_845_000],
  ),
  given(
    'a day to wait',
    'azure 429',
    { body: { statusCode: 429, message: 'Rate limit is exceeded. Try again in 86400 seconds.' } },
    ['unknown-rate-limit', 'model', true, 86_400_000],
  ),
  given(
    'the shared pool in a rush',
    'azure 429',
    {
      body: oai(
        'The system is currently experiencing high demand. Your request exceeds the maximum usage size allowed during peak load.',
        'too_many_requests',
      ),
    },
    ['overloaded', 'model', true, null],
  ),
  given(
    'a counter of the model catalogue',
    'azure 429',
    {
      body: oai(
        'Rate limit of 12 per 86400s exceeded for UserByModelByDay. Please wait 1234 seconds before retrying.',
        'RateLimitReached',
      ),
    },
    ['requests-per-day', 'model', true, 1_234_000],
  ),
]
