/** What a request allows its answer, and what its provider charges for that: read at the door, charged in its scope. */
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { knownCharges } from '../../src/config/charges.ts'
import { parseConfig } from '../../src/gateway/config/config.ts'
import { maxOutputIn } from '../../src/gateway/identity/max-output.ts'
import { runnerOf } from '../../src/host/internal.ts'
import { lanedFetch, openHost, scopeName } from '../../src/index.ts'
import { answerJson, call, post, startSetting, startUpstream } from './setting.ts'

describe('the output that a body allows', () => {
  it.each([
    ['{"model":"m","max_tokens":8}', 8],
    ['{"model":"m","max_completion_tokens": 16384 }', 16_384],
    ['{"max_output_tokens":5,"model":"m"}', 5],
    ['{"max_tokens":100,"max_completion_tokens":7}', 100],
    ['{"contents":[{"max_tokens":1}],"generationConfig":{"temperature":0,"maxOutputTokens":77}}', 77],
    ['{"generation_config":{"max_output_tokens":9}}', 9],
    ['{"messages":[],"inferenceConfig":{"maxTokens":512}}', 512],
    ['{"type":"response.create","response":{"max_output_tokens":300}}', 300],
    ['{"type":"response.create","response":{"max_output_tokens":"inf"}}', null],
    ['{"messages":[{"max_tokens":4}]}', null],
    ['{"max_tokens":null}', null],
    ['{"max_tokens":"8"}', null],
    ['{"max_tokens":-8}', null],
    ['{"max_tokens":8.5}', null],
    ['{"max_tokens":1e9}', null],
    ['{"max_tokens":1000000000}', 1_000_000_000],
    ['{"max_tokens":1000000001}', null],
    ['{"max_tokens":99999999999999}', null],
    ['{"generationConfig":"maxOutputTokens"}', null],
    ['["max_tokens",8]', null],
    ['', null],
  ])('%s is %s', (body, tokens) => {
    expect(maxOutputIn(Buffer.from(body))).toBe(tokens)
  })

  it('is what a JSON parser finds, in any object and spacing, and nothing makes it throw', () => {
    const names = fc.constantFrom('max_tokens', 'max_completion_tokens', 'max_output_tokens', 'model', 'x')
    const value = fc.oneof(fc.nat({ max: 100_000 }), fc.string(), fc.jsonValue({ maxDepth: 2 }))
    fc.assert(
      fc.property(fc.dictionary(names, value), fc.constantFrom(undefined, 1), (members, space) => {
        const stated = ['max_tokens', 'max_completion_tokens', 'max_output_tokens']
          .map((name) => (Object.hasOwn(members, name) ? members[name] : null))
          .filter((count) => Number.isInteger(count) && !Object.is(count, -0))
          .map(Number)
          .filter((count) => count >= 0 && count <= 1_000_000_000)
        const body = Buffer.from(JSON.stringify(members, null, space))
        expect(maxOutputIn(body)).toBe(stated.length === 0 ? null : Math.max(...stated))
      }),
    )
    fc.assert(fc.property(fc.uint8Array({ maxLength: 99 }), (bytes) => void maxOutputIn(Buffer.from(bytes))))
  })
})

describe("an upstream's charges", () => {
  const upstream = (charges: unknown) =>
    parseConfig({ upstreams: [{ name: 'local', baseUrl: 'http://h:1', charges }] }).upstreams.at(-1)

  it('are a known provider by name, or fields', () => {
    expect(upstream('cerebras')?.charges).toEqual(knownCharges.cerebras)
    expect(upstream({ failures: true })?.charges).toMatchObject({ failures: true, output: 'estimate' })
    expect(upstream(undefined)?.charges).toBe(null)
  })

  it.each([
    ['nobody', /config\.upstreams\.0\.charges: expected one of anthropic, .*got "nobody"/],
    [
      { outputWeight: 500 },
      /config\.upstreams\.0\.charges\.outputWeight: expected a number in \[0, 100\], got 500/,
    ],
    [{ weight: 5 }, /config\.upstreams\.0\.charges\.weight/],
    [7, /config\.upstreams\.0\.charges/],
  ])('%j is refused by field, range and value', (charges, message) => {
    expect(() => upstream(charges)).toThrow(message)
  })

  it('are of its scopes: a call takes what it allows, until its usage says what it took', async () => {
    const scripted = await startUpstream()
    const policy = { limits: { inputTokensPerMinute: 100_000 } }
    const { host, scripted: base } = await startSetting({ upstream: scripted, policy, charges: 'bedrock' })
    const answered = post(
      base,
      { 'x-rightofway-input-tokens': '1000' },
      {
        body: JSON.stringify({ ...call, max_tokens: 20_000 }),
      },
    )
    const arrival = await scripted.next()
    const [scope] = host.status()
    const context = () => runnerOf(host.scope(scope!.scope)).context
    expect(
      [...context().inFlight].map(([, { call, taken }]) => [call.maxOutputTokens, taken.inputTokens]),
    ).toEqual([[20_000, 21_000]])
    expect(context().budget.inputTokensPerMinute?.level).toBe(79_000)
    answerJson(arrival, { input_tokens: 1_000, output_tokens: 10 })
    await (await answered).text()
    await expect.poll(() => context().budget.inputTokensPerMinute?.level).toBeGreaterThanOrEqual(98_990)
  })
})

it('lanedFetch reads what a body allows too', async () => {
  const host = await openHost({ journal: ':memory:' })
  const scope = host.scope(scopeName({ provider: 'openai', credential: 'k', model: 'm' }), {
    charges: knownCharges.openai,
    limits: { inputTokensPerMinute: 100_000 },
  })
  let taken = 0
  const fetch = lanedFetch(scope, {
    fetch: async () => {
      for (const [, flight] of runnerOf(scope).context.inFlight) taken = flight.taken.inputTokens
      return Response.json({ usage: { prompt_tokens: 5, completion_tokens: 2 } })
    },
  })
  const body = JSON.stringify({ model: 'm', max_completion_tokens: 9_000, messages: [] })
  await (await fetch('https://api.openai.com/v1/chat/completions', { method: 'POST', body })).text()
  expect(taken).toBe(9_000)
  await host.close()
})
