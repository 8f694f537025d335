/**
 * The parts that decide without I/O: the model of a request, the size limit of a body, the allowed
 * configurations.
 */
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { InvalidInput } from '../../machines/index.ts'
import { overloadEvent } from '../../src/gateway/answers/error-event.ts'
import { EventBoundary } from '../../src/gateway/answers/wire.ts'
import { parseConfig } from '../../src/gateway/config/config.ts'
import { PolicyBook } from '../../src/gateway/config/policies.ts'
import { makeRouter } from '../../src/gateway/config/upstreams.ts'
import { climbs, type Target, targetOf } from '../../src/gateway/entrance/target.ts'
import { makeBytesEstimator } from '../../src/gateway/identity/estimator.ts'
import { textMember } from '../../src/gateway/identity/members.ts'
import { answerFields, requestFields } from '../../src/gateway/passage/forward-headers.ts'
import { modelOf } from '../../src/gateway/routing/route-table.ts'

describe('the model of a request', () => {
  it.each([
    ['/v1/messages', '{"model":"opus"}', 'opus'],
    [
      '/v1/chat/completions',
      ' {"messages":[{"model":"inner","a":"}\\"]"}],\n "model" : "gpt\\u002d5"}',
      'gpt-5',
    ],
    ['/v1/responses', '\ufeff{"a":{"b":[1,{"c":"\\\\"}]},"n":-1.5e3,"t":true,"model":"x"}', 'x'],
    ['/v1/messages', '{"model":7}', '*'],
    ['/v1/messages', '{"messages":[{"model":"inner"}]}', '*'],
    ['/v1/messages', '["model","x"]', '*'],
    ['/v1/messages', '{"a":"unfinished', '*'],
    ['/v1/messages', '{"model":"bad \\x escape"}', '*'],
    ['/v1/messages', '', '*'],
    ['/v1/messages', '{"\\u006dodel":"opus"}', 'opus'],
    ['/v1/messages', '{"model":"one","model":"two"}', 'two'],
    ['/v1/unheard-of', '{"model":"opus"}', 'opus'],
    ['/v1/unheard-of', '{}', null],
    ['/v1/messages/count_tokens', '{"model":"opus"}', null],
    ['/v1beta/models/gemini-3:streamGenerateContent', '{"contents":[]}', 'gemini-3'],
    ['/v1beta/models/gemini-3:countTokens', '{"contents":[]}', null],
    ['/openai/deployments/my%20gpt/chat/completions', '{"messages":[]}', 'my gpt'],
    ['/model/anthropic.claude-v9/converse-stream', '{"messages":[]}', 'anthropic.claude-v9'],
  ])('%s %s is %j', (path, body, model) => {
    expect(modelOf(path, Buffer.from(body))).toBe(model)
  })

  it('is what a JSON parser finds, for any object, in any spacing', () => {
    const key = fc.oneof(fc.constantFrom('model', '\\u006dodel'), fc.constant('a"b\\'), fc.string())
    const members = fc.uniqueArray(fc.tuple(key, fc.oneof(fc.string(), fc.jsonValue())), {
      selector: ([name]) => name,
      maxLength: 8,
    })
    fc.assert(
      fc.property(members, fc.constantFrom(undefined, 1, '\t'), (pairs, space) => {
        const text = JSON.stringify(Object.fromEntries(pairs), null, space)
        const { model } = JSON.parse(text)
        expect(textMember(Buffer.from(text), 'model')).toBe(typeof model === 'string' ? model : null)
      }),
    )
  })

  it('never throws and never runs away, whatever the bytes', () => {
    fc.assert(
      fc.property(fc.oneof(fc.uint8Array({ maxLength: 200 }), fc.string()), (bytes) => {
        const answer = textMember(Buffer.from(bytes as string), 'model')
        expect(answer === null || typeof answer === 'string').toBe(true)
      }),
    )
    const deep = Buffer.from(`{"a":${'['.repeat(2_000_000)}`)
    expect(textMember(deep, 'model')).toBe(null)
  })
})

describe('the estimate', () => {
  it('is a quarter of the bytes until usage teaches the scope better', () => {
    const estimator = makeBytesEstimator()
    const body = Buffer.alloc(4_000)
    expect(estimator.estimate(body, 'm', 'scope')).toBe(1_000)
    for (let call = 0; call < 20; call += 1) {
      const estimated = estimator.estimate(body, 'm', 'scope')
      estimator.learn(4_000, { inputTokens: 400, outputTokens: 1 }, 'scope', estimated)
    }
    expect(estimator.estimate(body, 'm', 'scope')).toBe(400)
    expect(estimator.estimate(body, 'm', 'another')).toBe(1_000)
    const { scope } = estimator.readings()
    expect(scope?.samples).toBe(20)
    expect(scope?.meanErrorRatio).toBeLessThan(0.1)
  })

  it('learns nothing from usage that says nothing', () => {
    const estimator = makeBytesEstimator()
    estimator.learn(4_000, { inputTokens: null, outputTokens: 1 }, 'scope', 1_000)
    estimator.learn(4_000, { inputTokens: 0, outputTokens: 1 }, 'scope', 1_000)
    expect(estimator.readings()).toEqual({})
  })
})

const problemsOf = (input: unknown): ReadonlyArray<string> => {
  try {
    parseConfig(input)
    return []
  } catch (error) {
    expect(error).toBeInstanceOf(InvalidInput)
    return (error as InvalidInput).problems.map(
      ({ field, expected, got }) => `${field} | ${expected} | ${got}`,
    )
  }
}

describe('the configuration', () => {
  it('needs nothing', () => {
    const config = parseConfig()
    expect(config).toMatchObject({ host: '127.0.0.1', port: 4_517, journal: '.rightofway/lanes.db' })
    expect(config.upstreams.map(({ name }) => name)).toEqual(['anthropic', 'openai'])
  })

  it('adds upstreams, and replaces a built-in one of the same name', () => {
    const { upstreams } = parseConfig({
      upstreams: [
        { name: 'local', baseUrl: 'http://127.0.0.1:8000/v1/', provider: 'vllm', honoursPriority: true },
        { name: 'anthropic', baseUrl: 'https://relay.example' },
      ],
    })
    expect(upstreams.find(({ name }) => name === 'local')).toEqual({
      name: 'local',
      baseUrl: 'http://127.0.0.1:8000/v1',
      wire: 'openai',
      provider: 'vllm',
      honoursPriority: true,
      charges: null,
    })
    expect(upstreams.find(({ name }) => name === 'anthropic')).toMatchObject({
      baseUrl: 'https://relay.example',
      wire: 'anthropic',
    })
  })

  it.each([
    [{ port: 70_000 }, 'config.port | an integer in [0, 65535] | 70000'],
    [{ port: '4517' }, 'config.port |'],
    [{ prot: 1 }, 'config.prot | only known fields | 1'],
    [[], 'config |'],
    [{ bodyLimitBytes: 1 }, 'config.bodyLimitBytes | an integer in [1024, 1073741824] | 1'],
    [{ upstreams: [{ name: 'lanes', baseUrl: 'http://x' }] }, 'config.upstreams.0.name |'],
    [{ upstreams: [{ name: 'x', baseUrl: 'ftp://x' }] }, 'config.upstreams.0.baseUrl | an http or https URL'],
    [{ upstreams: [{ name: 'x', baseUrl: 'http://u:p@x' }] }, 'config.upstreams.0.baseUrl |'],
    [{ upstreams: [{ name: 'x', baseUrl: 'http://x', wire: 'soap' }] }, 'config.upstreams.0.wire |'],
    [
      {
        upstreams: [
          { name: 'x', baseUrl: 'http://x' },
          { name: 'x', baseUrl: 'http://y' },
        ],
      },
      'config.upstreams.1.name | a name of its own | "x"',
    ],
    [
      { policies: { 'a/*': { capacity: 0 } } },
      'config.policies["a/*"].capacity | an integer in [1, 65536] | 0',
    ],
    [{ policies: { 'a/*': { capacity: 4, reserve: 4 } } }, 'config.policies["a/*"].reserve |'],
    [{ policies: { 'a/*': { capcity: 4 } } }, 'config.policies["a/*"].capcity |'],
    [{ policies: { 'a/*': 7 } }, 'config.policies["a/*"] |'],
    [{ emulator: { rules: [{ rule: 'tokens' }] } }, 'config.emulator.rules | rules (rule must be one of'],
  ])('%j is refused: %s', (input, start) => {
    const problems = problemsOf(input)
    expect(
      problems.some((problem) => problem.startsWith(start)),
      problems.join('\n'),
    ).toBe(true)
  })

  it('finds the policy whose pattern says most', () => {
    const book = new PolicyBook(
      {
        '*': { capacity: 41 },
        'anthropic/*': { capacity: 42 },
        'anthropic/*/claude-opus*': { capacity: 43 },
        'anthropic/ab12/*': { capacity: 44 },
        exact: { capacity: 45 },
      },
      [],
    )
    const capacityOf = (scope: string) => book.of(scope)?.capacity
    expect(capacityOf('openai/ff/gpt')).toBe(41)
    expect(capacityOf('anthropic/ff/claude-haiku')).toBe(42)
    expect(capacityOf('anthropic/ab12/claude-opus-9')).toBe(43)
    expect(capacityOf('anthropic/ab12/claude-haiku')).toBe(44)
    expect(capacityOf('exact')).toBe(45)
    expect(new PolicyBook({ 'a*a': {} }, []).of('a')).toBeUndefined()
    expect(new PolicyBook({}, []).of('x')).toBeUndefined()
  })
})

describe('what travels', () => {
  it('names the upstream and keeps its base path', () => {
    const upstream = {
      name: 'local',
      baseUrl: 'http://h:1/base',
      wire: 'openai',
      provider: 'p',
      honoursPriority: false,
      charges: null,
    } as const
    const router = makeRouter([upstream])
    const route = (url: string) => router.route(targetOf(url) as Target)
    expect(route('/local/v1/x?a=1&b=/../')).toEqual({
      upstream,
      origin: 'http://h:1',
      path: '/base/v1/x',
      query: 'a=1&b=/../',
    })
    expect([route('/local'), route('/other/v1'), route('/local/v1/../../x')]).toEqual([null, null, null])
    expect(route('http://h/local/x?')).toMatchObject({ path: '/base/x', query: '' })
  })

  it.each([
    '/local/../x',
    '/local/v1/..',
    '/local/%2e%2e/x',
    '/local/%2E./x',
    '/local/.%2e/x',
    '/local/..%2fx',
    '/local/..%2Fx',
    '/local/v1%2f..%2f..%2fx',
    '/local/..%5cx',
    '/local/..\\x',
    '/local/%252e%252e/x',
    '/local/%25252e%25252e%25252fx',
    '/local/..;a=1/x',
    '/local/..%3bx/y',
    '/local/%c0%ae%c0%ae%c0%afx',
  ])('%s climbs out of an upstream, so it is no route', (path) => {
    expect(climbs(path)).toBe(true)
  })

  it.each([
    '/local/v1/x..y',
    '/local/v1/...',
    '/local/v1/.../x',
    '/local/..a/b',
    '/local/a%2fb/models',
    '/local/%zz/%',
    '/local/models/meta%2Fllama-3..1',
    '/local/100%25',
    '/local/v1/%E2%80%A5/x',
  ])('%s stays inside, and passes as it is', (path) => {
    expect(climbs(path)).toBe(false)
    expect(targetOf(path)?.path).toBe(path)
  })

  it('fields of one hop stay behind, both ways', () => {
    const raw = [
      'Host',
      'a',
      'Connection',
      'close, X-Mine',
      'X-Mine',
      '1',
      'TE',
      'trailers',
      'X-A',
      '1',
      'X-A',
      '2',
    ]
    const options = { honoursPriority: false, keepLength: false }
    expect(requestFields(raw, options)).toEqual(['x-a', '1', 'x-a', '2', 'accept-encoding', 'identity'])
    const back = [
      'Set-Cookie',
      'a',
      'Set-Cookie',
      'b',
      'Transfer-Encoding',
      'chunked',
      'Bad Name',
      'x',
      'X-Bad',
      'a\u0001',
    ]
    expect(answerFields(back, { 'x-own': '1' })).toEqual(['Set-Cookie', 'a', 'Set-Cookie', 'b', 'x-own', '1'])
  })

  it('an event may begin only after a blank line', () => {
    const openAfter = (...chunks: ReadonlyArray<string>): boolean => {
      const boundary = new EventBoundary()
      for (const chunk of chunks) boundary.push(Buffer.from(chunk))
      return boundary.open
    }
    expect([
      openAfter(),
      openAfter('data: x\n\n'),
      openAfter('data: x\r\n\r\n'),
      openAfter('data: x\n', '\n'),
    ]).toEqual([true, true, true, true])
    expect([
      openAfter('data: x'),
      openAfter('data: x\n'),
      openAfter('data: x\r\n'),
      openAfter('\n\n', 'd'),
    ]).toEqual([false, false, false, false])
    expect(overloadEvent('other', '/v1', 'm')).toBeNull()
    expect(overloadEvent('gemini', '/v1', 'm')).toContain('"UNAVAILABLE"')
  })
})
