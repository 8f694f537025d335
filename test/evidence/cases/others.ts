import { claudeLimit, type EvidenceCase, given, noon, noonMs, oai } from './case.ts'

export const othersCases: ReadonlyArray<EvidenceCase> = [
  given(
    'measured use against each limit',
    'xai 429',
    {
      body: {
        code: 'resource-exhausted',
        error:
          'Too many tokens for team t-1 and model test-4. Your limit is - Requests per Minute (actual/limit): 5/60, Tokens per Minute (actual/limit): 21000/20000. Resets in: 18s',
      },
    },
    ['tokens-per-minute', 'model', true, 18_000, { actual: 21_000, limit: 20_000 }],
  ),
  given(
    'a model without allocation',
    'xai 429',
    { body: { code: 'resource-exhausted', error: 'Tokens per Minute (actual/limit): 0/0' } },
    ['tokens-per-minute', 'model', false, null],
  ),
  given(
    'spent credits as a 403',
    'xai 403',
    {
      body: {
        code: 'forbidden',
        error: 'Your team t-1 has either used all available credits or reached its monthly spending limit.',
      },
    },
    ['quota-exhausted', 'credential', false, null],
  ),
  given(
    'credits that were never there',
    'xai 403',
    { body: { code: 'forbidden', error: "Your newly created team doesn't have any credits yet." } },
    ['quota-exhausted', 'credential', false, null],
  ),
  given(
    'the slope',
    'dashscope 429',
    { body: { code: 'Throttling.BurstRate', message: 'Request rate increased too quickly.' } },
    ['acceleration', 'model', true, null],
  ),
  given(
    'an allocated token rate',
    'dashscope 429',
    {
      body: {
        code: 'Throttling.AllocationQuota',
        message: 'Allocated quota exceeded, please increase your quota limit.',
      },
    },
    ['tokens-per-minute', 'model', true, null],
  ),
  given(
    'a request rate',
    'dashscope 429',
    { body: oai('Too many requests in a short time.', 'limit_requests') },
    ['requests-per-minute', 'model', true, null],
  ),
  given(
    'a ceiling of the organization',
    'moonshot 429',
    {
      body: oai(
        'Your account org-c request reached organization max RPM: 6, please try again after 2 seconds',
        null,
        'rate_limit_reached_error',
      ),
    },
    ['requests-per-minute', 'credential', true, 2000, { limit: 6 }],
  ),
  given(
    'parallel calls of the organization',
    'moonshot 429',
    {
      body: oai(
        'Your account org-c request reached max organization concurrency: 2, please try again after 1 seconds',
        null,
        'rate_limit_reached_error',
      ),
    },
    ['concurrency', 'credential', true, 1000, { limit: 2 }],
  ),
  given(
    'a token quota that is money',
    'moonshot 429',
    {
      body: oai(
        'You exceeded your current token quota: 0, please check your account balance',
        null,
        'exceeded_current_quota_error',
      ),
    },
    ['quota-exhausted', 'credential', false, null],
  ),
  given(
    'credits held by running calls',
    'openrouter 402',
    {
      headers: { 'retry-after': '3' },
      body: {
        error: {
          code: 402,
          message: 'Would exceed your credits.',
          metadata: { limit_source: 'openrouter_in_flight_budget' },
        },
      },
    },
    ['concurrency', 'credential', true, 3000],
  ),
  given('no credits', 'openrouter 402', { body: { error: { code: 402, message: 'Insufficient credits' } } }, [
    'quota-exhausted',
    'credential',
    false,
    null,
  ]),
  given(
    'a reset inside the body, in milliseconds',
    'openrouter 429',
    {
      receivedAt: noon,
      body: {
        error: {
          code: 429,
          message: 'Rate limit exceeded: free-models-per-day.',
          metadata: {
            headers: { 'X-RateLimit-Remaining': '0', 'X-RateLimit-Reset': String(noonMs + 60_000) },
          },
        },
      },
    },
    ['requests-per-day', 'credential', true, 60_000],
  ),
  given(
    'a provider behind it',
    'openrouter 429',
    {
      body: {
        error: {
          code: 429,
          message: 'Provider returned error',
          metadata: {
            raw: JSON.stringify(claudeLimit('33,000 input tokens per minute')),
            provider_name: 'Anthropic',
          },
        },
      },
    },
    ['input-tokens-per-minute', 'model', true, null],
  ),
  given(
    'a pool behind it',
    'openrouter 429',
    {
      body: {
        error: {
          code: 429,
          message: 'Provider returned error',
          metadata: {
            raw: 'vendor/model-a is temporarily rate-limited upstream. Please retry shortly.',
            provider_name: 'Elsewhere',
          },
        },
      },
    },
    ['unknown-rate-limit', 'model', true, null],
  ),
  given(
    'an unknown provider that names its dimension',
    'somebody-new 429',
    {
      body: {
        message: 'Tokens per day limit exceeded - too many tokens processed.',
        type: 'too_many_tokens_error',
        code: 'token_quota_exceeded',
      },
    },
    ['tokens-per-day', 'model', true, null],
  ),
  given(
    'an unknown provider that does not',
    'somebody-new 429',
    { headers: { 'retry-after': '30' }, body: 'Too Many Requests' },
    ['unknown-rate-limit', 'credential', true, 30_000],
  ),
  given(
    'a page of an edge',
    'somebody-new 522',
    { body: '<!DOCTYPE html><title>522: rate limit of tokens per minute</title>' },
    ['not-capacity', 'provider', true, null],
  ),
]
