/** For any answer: no throw, one well-formed evidence, a bounded amount of work. */
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { evidenceKinds, evidenceScopes } from '../../machines/model/evidence.ts'
import { readEvidence } from '../../src/evidence/classify.ts'
import { classify, classifyFile, type Evidence, type ProviderAnswer } from '../../src/evidence/index.ts'
import { textCapChars, unwrap, visitCap } from '../../src/evidence/unwrap.ts'
import { runs } from '../properties/runs.ts'

const expectWellFormed = ({ kind, scope, retryable, retryAfterMs, facts }: Evidence): void => {
  expect(evidenceKinds).toContain(kind)
  expect(evidenceScopes).toContain(scope)
  expect(typeof retryable).toBe('boolean')
  expect(retryAfterMs === null || (Number.isSafeInteger(retryAfterMs) && retryAfterMs >= 0)).toBe(true)
  for (const value of Object.values(facts)) {
    expect(typeof value === 'string' || (Number.isFinite(value) && value >= 0)).toBe(true)
  }
}

const answerOf = (body: unknown, status = 429): ProviderAnswer => ({
  provider: 'proxy',
  status,
  headers: {},
  body,
})

/** Text made of the words that the rules look for, to reach deep into them. */
const refusalWords = fc.constantFrom(
  'rate limit',
  ' of ',
  '1,000',
  ' input',
  ' tokens',
  ' per ',
  'minute',
  'day',
  '{"error":',
  '"message":"',
  "{'error': ",
  '}',
  '[{',
  '\\"',
  'data: ',
  '\n\n',
  'event: error\n',
  'try again in ',
  '5s',
  '1.02:03:04',
  'Limit 5, ',
  'limit: 0',
  '(actual/limit): ',
  '3/4',
  'litellm.',
  'AnthropicException - ',
  'quota',
  '429',
  'e9',
  '-',
  '\u0000',
  '🌍',
)
const refusalText = fc.array(refusalWords, { maxLength: 60 }).map((words) => words.join(''))
const hostileValue = fc.oneof(
  refusalText,
  fc.string(),
  fc.jsonValue(),
  fc.anything({
    withNullPrototype: true,
    withBigInt: true,
    withDate: true,
    withMap: true,
    withSet: true,
    withTypedArray: true,
    withSparseArray: true,
  }),
)
const envelopeKey = fc.constantFrom(
  'error',
  'message',
  'code',
  'type',
  'details',
  'metadata',
  'raw',
  'retry_after',
  'retryDelay',
  'violations',
  'quotaId',
  'headers',
  'choices',
  'eventstream',
  'response',
  '__proto__',
  'constructor',
)

describe('any answer', () => {
  it('is read without a throw, from random bodies, headers and statuses', () => {
    const answer = fc.record({
      provider: fc.oneof(
        fc.constantFrom('anthropic', 'openai', 'azure', 'gemini', 'bedrock', 'xai', 'openrouter'),
        fc.string(),
      ),
      status: fc.oneof(fc.constantFrom(200, 400, 402, 413, 429, 500, 503, 529), fc.integer(), fc.double()),
      headers: fc.dictionary(
        fc.oneof(
          fc.constantFrom(
            'retry-after',
            'retry-after-ms',
            'date',
            'x-ratelimit-reset-tokens',
            'x-ratelimit-remaining-tokens',
            '__proto__',
          ),
          fc.string(),
        ),
        fc.oneof(fc.string(), fc.double().map(String), fc.array(fc.string())),
      ),
      body: fc.oneof(
        hostileValue,
        fc.dictionary(envelopeKey, fc.oneof(hostileValue, fc.dictionary(envelopeKey, hostileValue))),
      ),
      receivedAt: fc.oneof(fc.double(), fc.string(), fc.constant(undefined)),
    })
    fc.assert(
      fc.property(answer, (each) => {
        expectWellFormed(readEvidence(each as ProviderAnswer))
      }),
      { numRuns: runs(2000) },
    )
  })

  it('is read without a throw, from anything in place of its fields', () => {
    fc.assert(
      fc.property(
        fc.anything(),
        fc.anything(),
        fc.anything(),
        fc.anything(),
        (provider, status, headers, body) => {
          expectWellFormed(classify({ provider, status, headers, body } as unknown as ProviderAnswer))
          for (const each of classifyFile(body)) expectWellFormed(each)
        },
      ),
      { numRuns: runs(500) },
    )
  })

  it('is read even where the body throws', () => {
    const trap = new Proxy(
      {},
      {
        get: () => {
          throw new Error('no')
        },
        ownKeys: () => {
          throw new Error('no')
        },
      },
    )
    expect(classify(answerOf(trap))).toMatchObject({ kind: 'unknown-rate-limit' })
    expect(classify(undefined as unknown as ProviderAnswer)).toMatchObject({ kind: 'not-capacity' })
  })
})

const cyclic: Record<string, unknown> = { message: 'Overloaded', status: 'error' }
cyclic['error'] = cyclic
cyclic['details'] = [cyclic, cyclic]

const nested = (depth: number): unknown => {
  let value: unknown = { message: 'Overloaded' }
  for (let level = 0; level < depth; level++) value = { error: value }
  return value
}

const mega = 1_500_000
const bodies: ReadonlyArray<readonly [string, unknown]> = [
  ['a cycle', cyclic],
  ['an object 100,000 deep', nested(100_000)],
  ['text 100,000 brackets deep', '['.repeat(100_000)],
  ['text 100,000 objects deep', `${'{"error":'.repeat(100_000)}1${'}'.repeat(100_000)}`],
  ['text 100,000 Python dicts deep', `x ${"{'error': ".repeat(100_000)}`],
  [
    'strings in strings in strings',
    Array.from({ length: 12 }).reduce<string>((text) => JSON.stringify({ message: text }), 'Overloaded'),
  ],
  [
    'many siblings',
    { errors: Array.from({ length: 100_000 }, () => ({ message: 'Overloaded', details: [{}, {}, {}] })) },
  ],
  [
    'many keys',
    Object.fromEntries(Array.from({ length: 100_000 }, (_, index) => [`k${index}Exception`, {}])),
  ],
  ['megabytes of one letter', 'a'.repeat(mega)],
  ['megabytes of digits', '1'.repeat(mega)],
  ['megabytes of digits and commas', '1,'.repeat(mega / 2)],
  ['megabytes of spaces', ' '.repeat(mega)],
  ['megabytes of quotes', '"'.repeat(mega)],
  ['megabytes of backslashes', `{"${'\\'.repeat(mega)}`],
  ['megabytes of line ends', `data: x${'\n'.repeat(mega)}`],
  ['megabytes of "rate limit of"', 'rate limit of 1,'.repeat(mega / 16)],
  ['megabytes of "tokens per"', 'input tokens per '.repeat(mega / 17)],
  ['megabytes of "try again in"', 'try again in 1'.repeat(mega / 14)],
  ['megabytes of capitals', 'RateLimit'.repeat(mega / 9)],
  ['megabytes of events', 'event: error\ndata: {"error":{}}\n\n'.repeat(mega / 33)],
  ['megabytes of a message', { error: { message: 'number of requests '.repeat(mega / 19) } }],
  ['megabytes of a completion', { choices: [{ message: { content: 'overloaded '.repeat(mega / 11) } }] }],
]

describe('the bound on work', () => {
  it.each(bodies)('holds for %s', (_what, body) => {
    for (const status of [0, 200, 429, 500]) {
      const signal = unwrap(answerOf(body, status))
      expect(signal.visits).toBeLessThanOrEqual(visitCap)
      expect(signal.text.length).toBeLessThanOrEqual(textCapChars)
      expect(signal.codes.length).toBeLessThanOrEqual(visitCap)
      const startedMs = performance.now()
      expectWellFormed(readEvidence(answerOf(body, status)))
      // A few milliseconds at most where the machine is idle; a regex that backtracks would take minutes.
      expect(performance.now() - startedMs).toBeLessThan(1500)
    }
  })

  it('holds for a message at its cap, whatever word it repeats', () => {
    fc.assert(
      fc.property(fc.array(refusalWords, { minLength: 1, maxLength: 4 }), (words) => {
        const message = words.join('').repeat(5000)
        const startedMs = performance.now()
        expectWellFormed(readEvidence(answerOf({ error: { message } })))
        expect(performance.now() - startedMs).toBeLessThan(1500)
      }),
      { numRuns: runs(300) },
    )
  })
})

describe('a large answer that still says what it means', () => {
  const limit = 'This request would exceed the rate limit of 3,000 requests per minute.'

  it('in a body with megabytes behind its error', () => {
    const body = JSON.stringify({
      error: { type: 'rate_limit_error', message: limit },
      echo: 'x'.repeat(mega),
    })
    expect(classify(answerOf(body))).toMatchObject({ kind: 'requests-per-minute' })
  })

  it('in an error at the end of megabytes of events', () => {
    const delta = `event: content_block_delta\ndata: {"delta":{"text":"word"}}\n\n`.repeat(mega / 60)
    const body = `${delta}event: error\ndata: ${JSON.stringify({ type: 'error', error: { type: 'rate_limit_error', message: limit } })}\n\n`
    expect(classify(answerOf(body, 200))).toMatchObject({ kind: 'requests-per-minute' })
  })
})
