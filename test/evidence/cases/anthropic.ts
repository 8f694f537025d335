import { claude, claudeLimit, type EvidenceCase, given, noon, noonMs } from './case.ts'

export const anthropicCases: ReadonlyArray<EvidenceCase> = [
  given(
    'input tokens, numbers in thousands',
    'anthropic 429',
    { body: claudeLimit('450,000 input tokens per minute'), headers: { 'retry-after': '11' } },
    ['input-tokens-per-minute', 'model', true, 11_000, { limit: 450_000, unit: 'input_tokens_per_minute' }],
  ),
  given(
    'output tokens, although the advice speaks of the prompt',
    'anthropic 429',
    { body: claudeLimit('9,500 output tokens per minute') },
    ['output-tokens-per-minute', 'model', true, null, { limit: 9500, unit: 'output_tokens_per_minute' }],
  ),
  given(
    'requests, although the advice speaks of tokens',
    'anthropic 429',
    { body: claudeLimit('75 requests per minute') },
    ['requests-per-minute', 'model', true, null, { limit: 75, unit: 'requests_per_minute' }],
  ),
  given(
    'a limit of nothing never clears',
    'anthropic 429',
    { body: claudeLimit('0 input tokens per minute') },
    ['quota-exhausted', 'model', false, null],
  ),
  given(
    'the workspace instead of the organization',
    'anthropic 429',
    {
      body: claude(
        'rate_limit_error',
        "This request would exceed your workspace's rate limit of 12,000 output tokens per minute.",
      ),
    },
    ['output-tokens-per-minute', 'model', true, null],
  ),
  given(
    'request tokens are tokens',
    'anthropic 429',
    { body: claude('rate_limit_error', 'Number of request tokens has exceeded your per-minute rate limit.') },
    ['tokens-per-minute', 'model', true, null],
  ),
  given(
    'a daily limit on requests',
    'anthropic 429',
    { body: claude('rate_limit_error', 'Number of requests has exceeded your daily rate limit.') },
    ['requests-per-day', 'model', true, null],
  ),
  given(
    'the slope, with the ceiling now and next',
    'anthropic 429',
    {
      body: claude(
        'rate_limit_error',
        "This request would exceed your organization's maximum usage increase rate for input tokens per minute. Your current limit is 140,500 input tokens per minute, and will increase to 171,250 at the next minute boundary.",
      ),
    },
    [
      'acceleration',
      'model',
      true,
      null,
      { currentLimit: 140_500, nextLimit: 171_250, unit: 'input_tokens_per_minute' },
    ],
  ),
  given(
    'the slope of output tokens, without numbers',
    'anthropic 429',
    {
      body: claude(
        'rate_limit_error',
        'This would exceed the maximum usage increase rate for output tokens per minute.',
      ),
    },
    ['acceleration', 'model', true, null, {}],
  ),
  given(
    'connections',
    'anthropic 429',
    { body: claude('rate_limit_error', 'Number of concurrent connections has exceeded your rate limit.') },
    ['concurrency', 'credential', true, null],
  ),
  given('load across all users', 'anthropic 529', { body: claude('overloaded_error', 'Overloaded') }, [
    'overloaded',
    'provider',
    true,
    null,
  ]),
  given('load, with nothing to read', 'anthropic 529', {}, ['overloaded', 'provider', true, null]),
  given(
    'a bare refusal',
    'anthropic 429',
    { body: claude('rate_limit_error', 'Error'), headers: { 'x-should-retry': 'true' } },
    ['unknown-rate-limit', 'credential', true, null],
  ),
  given(
    'only the headers tell: output tokens are used up',
    'anthropic 429',
    {
      body: claude('rate_limit_error', 'Rate limited'),
      receivedAt: noonMs,
      headers: {
        'anthropic-ratelimit-output-tokens-remaining': '0',
        'anthropic-ratelimit-output-tokens-reset': '2031-03-05T12:00:17.250Z',
        'anthropic-ratelimit-requests-remaining': '4',
      },
    },
    ['output-tokens-per-minute', 'model', true, 17_250],
  ),
  given(
    'a spend cap by its code',
    'anthropic 429',
    {
      body: {
        type: 'error',
        error: {
          type: 'rate_limit_error',
          message: 'Limit reached',
          details: { error_code: 'enforced_spend_limit_reached' },
        },
      },
    },
    ['quota-exhausted', 'credential', false, null],
  ),
  given(
    'a cap that the owner set',
    'anthropic 400',
    {
      body: claude(
        'invalid_request_error',
        'You have reached your specified API usage limits. You will regain access on 2031-04-01 at 00:00 UTC.',
      ),
    },
    ['quota-exhausted', 'credential', false, null],
  ),
  given(
    'no credit left',
    'anthropic 400',
    { body: claude('invalid_request_error', 'Your credit balance is too low to access the API.') },
    ['quota-exhausted', 'credential', false, null],
  ),
  given(
    'an entitlement of one request holds nobody else',
    'anthropic 429',
    { body: claude('rate_limit_error', 'Extra usage is required for long context requests.') },
    ['not-capacity', 'model', false, null],
  ),
  given(
    'a subscription window that comes back by itself',
    'anthropic 429',
    {
      body: claude('rate_limit_error', "This request would exceed your account's rate limit."),
      receivedAt: noon,
      headers: {
        'anthropic-ratelimit-unified-status': 'rejected',
        'anthropic-ratelimit-unified-reset': String(noonMs / 1000 + 5400),
      },
    },
    ['quota-exhausted', 'credential', true, 5_400_000],
  ),
  given(
    'an allowed subscription is no reason',
    'anthropic 429',
    {
      body: claude('rate_limit_error', 'Rate limited'),
      headers: { 'anthropic-ratelimit-unified-status': 'allowed' },
    },
    ['unknown-rate-limit', 'credential', true, null],
  ),
  given(
    'a prompt above the window of the model',
    'anthropic 400',
    { body: claude('invalid_request_error', 'prompt is too long: 300123 tokens > 200000 maximum') },
    ['not-capacity', 'model', false, null],
  ),
  given('a fault of the service', 'anthropic 500', { body: claude('api_error', 'Internal server error') }, [
    'not-capacity',
    'provider',
    true,
    null,
  ]),
  given(
    'a key that is not valid',
    'anthropic 401',
    { body: claude('authentication_error', 'invalid x-api-key') },
    ['not-capacity', 'credential', false, null],
  ),
]
