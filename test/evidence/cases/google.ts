import { type EvidenceCase, given, google, violations } from './case.ts'

export const googleCases: ReadonlyArray<EvidenceCase> = [
  given(
    'a day is violated; the short delay is only reported',
    'gemini 429',
    {
      body: google('You exceeded your current quota.', [
        violations({ quotaId: 'GenerateRequestsPerDayPerProjectPerModel-FreeTier', quotaValue: '75' }),
        { retryDelay: '41.25s' },
      ]),
    },
    ['requests-per-day', 'model', true, 41_250, { limit: 75 }],
  ),
  given(
    'input tokens of a minute',
    'gemini 429',
    {
      body: google('You exceeded your current quota.', [
        violations({ quotaId: 'GenerateContentInputTokensPerModelPerMinute-FreeTier', quotaValue: '125000' }),
      ]),
    },
    ['input-tokens-per-minute', 'model', true, null, { limit: 125_000 }],
  ),
  given(
    'the longest of three windows',
    'gemini 429',
    {
      body: google('Quota.', [
        violations(
          { quotaId: 'GenerateRequestsPerMinutePerProjectPerModel' },
          { quotaId: 'GenerateContentInputTokensPerModelPerDay' },
          { quotaId: 'GenerateRequestsPerMinutePerProjectPerModel' },
        ),
      ]),
    },
    ['tokens-per-day', 'model', true, null],
  ),
  given(
    'an allocation of nothing',
    'gemini 429',
    {
      body: google(
        '* Quota exceeded for metric: generativelanguage.googleapis.com/generate_content_free_tier_requests, limit: 0, model: test-pro\nPlease retry in 9s.',
      ),
    },
    ['quota-exhausted', 'model', false, 9000],
  ),
  given(
    'the same, in the details',
    'gemini 429',
    {
      body: google('Quota.', [
        violations({ quotaId: 'GenerateRequestsPerDayPerProjectPerModel', quotaValue: '0' }),
      ]),
    },
    ['quota-exhausted', 'model', false, null],
  ),
  given(
    'an array around it',
    'gemini 429',
    {
      body: [
        google('Quota.', [
          violations({ quotaId: 'GenerateRequestsPerMinutePerProjectPerModel' }),
          { retryDelay: '3s' },
        ]),
      ],
    },
    ['requests-per-minute', 'model', true, 3000],
  ),
  given(
    'the text form of a client library',
    'langchain 429',
    {
      body: '429 Quota exceeded [violations {\n  quota_id: "GenerateRequestsPerMinutePerProjectPerModel-FreeTier"\n}\n, retry_delay {\n  seconds: 44\n}\n]',
    },
    ['requests-per-minute', 'model', true, 44_000],
  ),
  given(
    'capacity of the model',
    'gemini 429',
    {
      body: google('No capacity available for model test-pro on the server', [
        { reason: 'MODEL_CAPACITY_EXHAUSTED' },
      ]),
    },
    ['overloaded', 'model', true, null],
  ),
  given(
    'high demand',
    'gemini 503',
    { body: google('This model is currently experiencing high demand.', [], 'UNAVAILABLE') },
    ['overloaded', 'model', true, null],
  ),
  given('prepaid money', 'gemini 429', { body: google('Your prepayment credits are depleted.') }, [
    'quota-exhausted',
    'credential',
    false,
    null,
  ]),
  given(
    'a cap on spending',
    'gemini 429',
    { body: google('Your project has exceeded its monthly spending cap.') },
    ['quota-exhausted', 'credential', false, null],
  ),
  given('a rate of spending', 'gemini 429', { body: google('Spend rate limit exceeded for this project.') }, [
    'unknown-rate-limit',
    'credential',
    true,
    null,
  ]),
  given(
    'a request above the window of the model',
    'gemini 400',
    {
      body: {
        error: {
          code: 400,
          message: 'The input token count (90000) exceeds the maximum number of tokens allowed (65536).',
          status: 'INVALID_ARGUMENT',
        },
      },
    },
    ['not-capacity', 'model', false, null],
  ),
  given('the shared pool', 'vertex 429', { body: google('Resource exhausted. Please try again later.') }, [
    'overloaded',
    'model',
    true,
    null,
  ]),
  given(
    'a metric by its path',
    'vertex 429',
    {
      body: google(
        'Quota exceeded for aiplatform.googleapis.com/online_prediction_output_tokens_per_minute_per_base_model with base model: test.',
      ),
    },
    ['output-tokens-per-minute', 'model', true, null],
  ),
  given(
    'a metric that leaves its window out',
    'vertex-ai 429',
    {
      body: google(
        'Quota exceeded for aiplatform.googleapis.com/global_online_prediction_requests_per_base_model with base model: test.',
      ),
    },
    ['requests-per-minute', 'model', true, null],
  ),
  given(
    'reserved throughput, without a dimension',
    'vertex 429',
    { body: google('Too many requests. Exceeded the Provisioned Throughput.') },
    ['unknown-rate-limit', 'model', true, null],
  ),
  given(
    'a quota in the metadata',
    'vertex 429',
    {
      body: google('Quota exceeded.', [
        {
          reason: 'RATE_LIMIT_EXCEEDED',
          metadata: {
            quota_limit: 'GenerateContentRequestsPerMinutePerProjectPerRegion',
            quota_limit_value: '60',
          },
        },
      ]),
    },
    ['requests-per-minute', 'model', true, null, { limit: 60 }],
  ),
]
