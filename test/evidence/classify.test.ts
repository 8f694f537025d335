import { existsSync, readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { classify, classifyFile, type ProviderAnswer } from '../../src/evidence/index.ts'
import { amazonCases } from './cases/amazon.ts'
import { anthropicCases } from './cases/anthropic.ts'
import { azureCases } from './cases/azure.ts'
import type { EvidenceCase } from './cases/case.ts'
import { googleCases } from './cases/google.ts'
import { hostedCases } from './cases/hosted.ts'
import { openaiCases } from './cases/openai.ts'
import { othersCases } from './cases/others.ts'
import { bareWordCases, outputCases } from './cases/output.ts'
import { wrappingCases } from './cases/wrappings.ts'

const tables: ReadonlyArray<readonly [string, ReadonlyArray<EvidenceCase>]> = [
  ['Anthropic', anthropicCases],
  ['OpenAI', openaiCases],
  ['Azure', azureCases],
  ['Gemini and Vertex AI', googleCases],
  ['Bedrock', amazonCases],
  ['hosts of open models', hostedCases],
  ['other providers', othersCases],
  ['wrappings', wrappingCases],
  ['model output', outputCases],
  ['bare words', bareWordCases],
]

describe.each(tables)('%s', (_title, cases) => {
  it.each(cases.map((each) => [`${each.provider || 'anyone'} ${each.status}: ${each.says}`, each] as const))(
    '%s',
    (_says, each) => {
      const { kind, scope, retryable, retryAfterMs, facts } = each
      const got = classify(each)
      expect({
        kind: got.kind,
        scope: got.scope,
        retryable: got.retryable,
        retryAfterMs: got.retryAfterMs,
      }).toEqual({ kind, scope, retryable, retryAfterMs })
      if (facts !== undefined) expect(got.facts).toEqual(facts)
    },
  )
})

const everyCase = tables.flatMap(([, cases]) => cases)
/** Refusals that their shape alone explains: no provider's default and no header grammar of its own. */
const selfExplained = [...anthropicCases, ...openaiCases, ...hostedCases, ...othersCases].filter(
  ({ kind, says, status }) =>
    !['unknown-rate-limit', 'overloaded', 'not-capacity'].includes(kind) &&
    status !== 412 &&
    // Behind a success only a known envelope is opened; the rest is model output.
    status !== 200 &&
    !/headers|used up|dynamic limit on requests/.test(says),
)

describe('laws of classification', () => {
  it.each(selfExplained.map((each) => [each.says, each] as const))(
    'the name of the provider changes nothing: %s',
    (_says, each) => {
      for (const provider of ['proxy', 'unheard-of', 'litellm', '']) {
        expect(classify({ ...each, provider })).toEqual(classify(each))
      }
    },
  )

  it.each(selfExplained.map((each) => [each.says, each] as const))(
    'a wrapping changes nothing: %s',
    (_says, each) => {
      const text = typeof each.body === 'string' ? each.body : JSON.stringify(each.body)
      const wrapped: ReadonlyArray<unknown> = [
        text,
        JSON.stringify(text),
        { error: { message: text } },
        { raw: each.body },
        [each.body],
      ]
      for (const body of wrapped) expect(classify({ ...each, body })).toEqual(classify(each))
    },
  )

  it('other numbers change only the numbers', () => {
    for (const limit of [1, 999, 1000, 4_000_000]) {
      const message = `This request would exceed your organization's rate limit of ${limit.toLocaleString('en-US')} input tokens per minute.`
      const got = classify({
        provider: 'x',
        status: 429,
        headers: {},
        body: { type: 'error', error: { type: 'rate_limit_error', message } },
      })
      expect(got).toMatchObject({ kind: 'input-tokens-per-minute', facts: { limit } })
    }
  })

  it('a Headers object reads like a record', () => {
    for (const each of everyCase) {
      const headers = new Headers(each.headers as Record<string, string>)
      expect(classify({ ...each, headers })).toEqual(classify(each))
    }
  })

  it('one answer always gives the same evidence', () => {
    for (const each of everyCase)
      expect(classify(structuredClone({ ...each, says: '' }))).toEqual(classify(each))
  })

  it('facts are finite and not negative', () => {
    for (const each of everyCase) {
      const { unit, ...numbers } = classify(each).facts
      for (const value of Object.values(numbers)) expect(value).toBeGreaterThanOrEqual(0)
      expect(unit === undefined || unit.length < 40).toBe(true)
    }
  })
})

describe('classifyFile', () => {
  const body = { type: 'error', error: { type: 'overloaded_error', message: 'Overloaded' } }
  const overloaded = { kind: 'overloaded', scope: 'provider', retryable: true, retryAfterMs: null }

  it('reads a list of cases, one result each, under their ids', () => {
    const cases = [
      { id: 'a', provider: 'anthropic', status: 529, headers: {}, body },
      { id: 'b', provider: 'x', status: 200, headers: {}, body: 'fine' },
    ]
    const results = classifyFile(cases)
    expect(results.map(({ id, kind }) => [id, kind])).toEqual([
      ['a', 'overloaded'],
      ['b', 'not-capacity'],
    ])
    expect(Object.keys(results[0] ?? {}).toSorted()).toEqual([
      'facts',
      'id',
      'kind',
      'provider',
      'retryAfterMs',
      'retryable',
      'scope',
    ])
  })

  it.each([
    ['one answer', { provider: 'anthropic', status: 529, headers: {}, body }],
    ['a body alone', body],
    ['a body as text', JSON.stringify(body)],
    ['a body that is a list', [body]],
    ['what curl -i prints', `HTTP/1.1 529 \r\ncontent-type: application/json\r\n\r\n${JSON.stringify(body)}`],
  ])('reads %s', (_what, input) => {
    expect(classifyFile(input)).toEqual([expect.objectContaining(overloaded)])
  })

  it('reads a sentence alone', () => {
    const [got] = classifyFile(
      'Rate limit reached for test-5o on requests per min (RPM): Limit 3, Used 3, Requested 1. Please try again in 20s.',
    )
    expect(got).toMatchObject({ kind: 'requests-per-minute', retryAfterMs: 20_000 })
  })
})

interface CorpusCase extends ProviderAnswer {
  readonly id: string
  readonly expected: {
    readonly kind: string
    readonly retryAfterMs: number | null
    readonly scope: string
    readonly retryable: boolean
  }
  readonly facts?: Readonly<Record<string, unknown>>
  /** The second defensible reading, in words such as "kind overloaded, retryable true". */
  readonly contested?: string
}

/** An optional file with more cases. */
const corpusPath = process.env['RIGHTOFWAY_SIGNALS'] ?? ''

describe.skipIf(!existsSync(corpusPath))('the optional signals corpus', () => {
  const cases: ReadonlyArray<CorpusCase> = existsSync(corpusPath)
    ? JSON.parse(readFileSync(corpusPath, 'utf8'))
    : []

  it.each(cases.map((each) => [each.id, each] as const))('%s', (_id, each) => {
    const { facts, ...got } = classify(each)
    const second = Object.fromEntries(
      [...(each.contested ?? '').matchAll(/\b(kind|scope|retryable) ([\w-]+)/g)].map(([, key, value]) => [
        key,
        key === 'retryable' ? value === 'true' : value,
      ]),
    )
    expect([each.expected, { ...each.expected, ...second }]).toContainEqual(got)
    if (each.facts !== undefined) expect(facts).toMatchObject(each.facts)
  })
})
