import { type EvidenceCase, given, noonMs, oai, sse } from './case.ts'

export const openaiCases: ReadonlyArray<EvidenceCase> = [
  given(
    'tokens per minute with its tally',
    'openai 429',
    {
      body: oai(
        'Rate limit reached for test-5o in organization org-b on tokens per min (TPM): Limit 450000, Used 448000, Requested 9100. Please try again in 946ms.',
        'rate_limit_exceeded',
        'tokens',
      ),
    },
    ['tokens-per-minute', 'model', true, 946, { limit: 450_000, used: 448_000, requested: 9100 }],
  ),
  given(
    'requests per minute',
    'openai 429',
    {
      body: oai(
        'Rate limit reached for test-5o on requests per min (RPM): Limit 500, Used 500, Requested 1. Please try again in 120ms.',
        'rate_limit_exceeded',
        'requests',
      ),
    },
    ['requests-per-minute', 'model', true, 120],
  ),
  given(
    'requests per day, although it advertises billing',
    'openai 429',
    {
      body: oai(
        'Rate limit reached for test-5o on requests per day (RPD): Limit 200, Used 200, Requested 1. Please try again in 7m12s. You can increase your rate limit by adding a payment method at https://example.org/billing.',
        'rate_limit_exceeded',
        'requests',
      ),
    },
    ['requests-per-day', 'model', true, 432_000],
  ),
  given(
    'tokens per day',
    'openai 429',
    {
      body: oai(
        'Rate limit reached for test-5o on tokens per day (TPD): Limit 1000000, Used 999000, Requested 5000. Please try again in 1h2m3.5s.',
        'rate_limit_exceeded',
        'tokens',
      ),
    },
    ['tokens-per-day', 'model', true, 3_723_500],
  ),
  given(
    'a request above the whole limit never fits',
    'openai 429',
    {
      body: oai(
        'Request too large for test-5o on tokens per min (TPM): Limit 10000, Requested 25000.',
        'rate_limit_exceeded',
        'tokens',
      ),
    },
    ['tokens-per-minute', 'model', false, null, { limit: 10_000, requested: 25_000 }],
  ),
  given(
    'the noun only in the type',
    'openai 429',
    { body: oai('Rate limit reached', 'rate_limit_exceeded', 'requests') },
    ['requests-per-minute', 'model', true, null],
  ),
  given(
    'the bucket of the whole project',
    'openai 429',
    {
      body: oai('Rate limit reached', 'rate_limit_exceeded', 'tokens'),
      headers: {
        'x-ratelimit-remaining-project-tokens': '0',
        'x-ratelimit-limit-project-tokens': '90000',
        'x-ratelimit-reset-project-tokens': '1.5s',
      },
    },
    ['tokens-per-minute', 'credential', true, 1500],
  ),
  given(
    'an empty account',
    'openai 429',
    {
      body: oai(
        'You exceeded your current quota, please check your plan and billing details.',
        'insufficient_quota',
        'insufficient_quota',
      ),
    },
    ['quota-exhausted', 'credential', false, null],
  ),
  given(
    'a spend cap, whatever its headers promise',
    'openai 429',
    {
      body: oai('Limit reached.', 'organization_spend_limit_exceeded', 'insufficient_quota'),
      headers: { 'retry-after': '20' },
    },
    ['quota-exhausted', 'credential', false, 20_000],
  ),
  given(
    'a usage limit that calls itself requests',
    'openai 429',
    { body: oai('Limit reached', 'organization_usage_limit_exceeded', 'requests') },
    ['quota-exhausted', 'credential', false, null],
  ),
  given(
    'the slope, by its code',
    'openai 503',
    { body: oai('Slow down, please', 'slow_down', 'service_unavailable_error') },
    ['acceleration', 'model', true, null],
  ),
  given(
    'load on all servers',
    'openai 503',
    { body: oai('We are overloaded right now.', 'server_is_overloaded') },
    ['overloaded', 'provider', true, null],
  ),
  given(
    'load on one model',
    'openai 503',
    { body: oai('That model is currently overloaded with other requests.') },
    ['overloaded', 'model', true, null],
  ),
  given('load, said on a success', 'openai 200', { body: oai('The chosen model is at capacity.') }, [
    'overloaded',
    'model',
    true,
    null,
  ]),
  given(
    'a failed response inside a stream',
    'openai 200',
    {
      body: sse(
        ['response.created', { type: 'response.created', response: { status: 'in_progress' } }],
        [
          'response.failed',
          {
            type: 'response.failed',
            response: {
              status: 'failed',
              error: {
                code: 'rate_limit_exceeded',
                message:
                  'Rate limit reached for test-5 on tokens per min (TPM): Limit 60000, Used 59000, Requested 2000. Please try again in 2.25s.',
              },
            },
          },
        ],
      ),
    },
    ['tokens-per-minute', 'model', true, 2250, { limit: 60_000, used: 59_000, requested: 2000 }],
  ),
  given(
    'too many words for the model',
    'openai 400',
    {
      body: oai(
        "This model's maximum context length is 64000 tokens, and you asked for 70000.",
        'context_length_exceeded',
        'invalid_request_error',
      ),
    },
    ['not-capacity', 'model', false, null],
  ),
  given(
    'an older wording with slashes',
    'openai 429',
    {
      body: oai(
        'Rate limit reached for test-4 in organization org-b on requests per min. Limit: 4 / min. Please try again in 15s.',
        null,
        'requests',
      ),
    },
    ['requests-per-minute', 'model', true, 15_000, { limit: 4 }],
  ),
  given(
    'a subscription that tells when it comes back',
    'openai 429',
    {
      receivedAt: noonMs,
      body: {
        error: {
          type: 'usage_limit_reached',
          message: 'The usage limit has been reached',
          resets_at: noonMs / 1000 + 90,
        },
      },
    },
    ['quota-exhausted', 'credential', true, 90_000],
  ),
]
