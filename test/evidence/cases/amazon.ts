import { type EvidenceCase, given } from './case.ts'

export const amazonCases: ReadonlyArray<EvidenceCase> = [
  given(
    'too many tokens',
    'bedrock 429',
    {
      headers: { 'x-amzn-ErrorType': 'ThrottlingException:http://example.org/' },
      body: { message: 'Too many tokens, please wait before trying again.' },
    },
    ['tokens-per-minute', 'model', true, null],
  ),
  given(
    'too many tokens of a day',
    'bedrock 429',
    {
      headers: { 'x-amzn-errortype': 'ThrottlingException' },
      body: { message: 'Too many tokens per day, please wait before trying again.' },
    },
    ['tokens-per-day', 'model', true, null],
  ),
  given(
    'too many requests, as a 400',
    'aws-bedrock 400',
    {
      body: {
        __type: 'com.example#ThrottlingException',
        message: 'Too many requests, please wait before trying again.',
      },
    },
    ['requests-per-minute', 'model', true, null],
  ),
  given(
    'a rate without a noun',
    'bedrock 429',
    { headers: { 'x-amzn-errortype': 'ThrottlingException' }, body: { message: 'Rate exceeded' } },
    ['unknown-rate-limit', 'model', true, null],
  ),
  given(
    'connections of everyone',
    'bedrock 503',
    { body: { message: 'Too many connections, please wait before trying again.' } },
    ['overloaded', 'model', true, null],
  ),
  given(
    'a cold model',
    'bedrock 429',
    {
      headers: { 'x-amzn-errortype': 'ModelNotReadyException' },
      body: { message: 'The model is not ready. The SDK will retry up to 5 times.' },
    },
    ['overloaded', 'model', true, null],
  ),
  given(
    'a service quota',
    'bedrock 400',
    {
      headers: { 'x-amzn-errortype': 'ServiceQuotaExceededException' },
      body: { message: 'Above the quota of your account.' },
    },
    ['quota-exhausted', 'credential', false, null],
  ),
  given(
    'a decoded frame',
    'bedrock 200',
    {
      body: {
        eventstream: [
          { headers: { ':event-type': 'messageStart' }, payload: {} },
          {
            headers: { ':message-type': 'exception', ':exception-type': 'throttlingException' },
            payload: { message: 'Too many tokens, please wait before trying again.' },
          },
        ],
      },
    },
    ['tokens-per-minute', 'model', true, null],
  ),
  given(
    'a member of the stream union',
    'bedrock 200',
    { body: { throttlingException: { message: 'Too many requests, please wait before trying again.' } } },
    ['requests-per-minute', 'model', true, null],
  ),
  given(
    'only the words of a client library',
    'unheard-of 500',
    {
      body: 'An error occurred (ThrottlingException) when calling the Converse operation (reached max retries: 2): Too many tokens, please wait before trying again.',
    },
    ['tokens-per-minute', 'model', true, null],
  ),
]
