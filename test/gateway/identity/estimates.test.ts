/** What calls are estimated at: by what stands in their bodies, and by what calls before them took. */
import { deflateSync } from 'node:zlib'
import fc from 'fast-check'
import { describe, expect, it, vi } from 'vitest'
import type { Wire } from '../../../src/gateway/answers/wire.ts'
import { weigh, wireOfProvider } from '../../../src/gateway/identity/body-weight.ts'
import { makeBytesEstimator } from '../../../src/gateway/identity/estimator.ts'
import { unknownMediaTokens } from '../../../src/gateway/identity/media.ts'
import { answerJson, post, startSetting, startUpstream } from '../setting.ts'

const weightOf = (body: string | Buffer, wire: Wire = 'anthropic', contentType = 'application/json') =>
  weigh({ body: Buffer.from(body), wire, rule: 'text', contentType })

/** A PNG of these sides, `bytes` long. */
const png = (width: number, height: number, bytes: number): Buffer => {
  const chunk = (type: string, data: Buffer): Buffer => {
    const length = Buffer.alloc(4)
    length.writeUInt32BE(data.length)
    return Buffer.concat([length, Buffer.from(type), data, Buffer.alloc(4)])
  }
  const header = Buffer.alloc(13)
  header.writeUInt32BE(width, 0)
  header.writeUInt32BE(height, 4)
  header.set([8, 2], 8)
  const start = Buffer.concat([Buffer.from('\x89PNG\r\n\x1a\n', 'latin1'), chunk('IHDR', header)])
  const noise = Buffer.from(
    Array.from({ length: Math.max(0, bytes - start.length - 12) }, (_, at) => (at * 7_919) % 251),
  )
  return Buffer.concat([start, chunk('IDAT', noise), deflateSync('')])
}
const pdf = (pages: number, bytes: number): Buffer =>
  Buffer.from(`%PDF-1.7\n${'/Type /Page \n'.repeat(pages)}/Type /Pages\n${'x'.repeat(bytes)}`)
const wave = (seconds: number): Buffer => {
  const head = Buffer.alloc(44)
  head.write('RIFF', 0)
  head.write('WAVEfmt ', 8)
  head.writeUInt32LE(32_000, 28)
  return Buffer.concat([head, Buffer.alloc(32_000 * seconds, 3)])
}

const holding = (data: string, text = 'Say what you see.') =>
  JSON.stringify({ messages: [{ role: 'user', content: [{ type: 'text', text }, { source: { data } }] }] })

describe('media', () => {
  it.each<[string, Buffer, Wire, number]>([
    ['an image, by its pixels', png(1_000, 750, 20_000), 'anthropic', 1_000],
    ['a large one, capped', png(6_000, 4_000, 1_500_000), 'anthropic', 1_600],
    ['an image, by tiles', png(1_024, 1_024, 20_000), 'openai', 765],
    ['a large one, by tiles', png(2_048, 4_096, 20_000), 'openai', 1_105],
    ['a small one of Gemini', png(300, 300, 2_000), 'gemini', 258],
    ['a large one of Gemini', png(1_536, 768, 20_000), 'gemini', 516],
    ['a document, by its pages', pdf(7, 60_000), 'anthropic', 21_000],
    ['a document whose pages are hidden', pdf(0, 200_000), 'gemini', 5 * 258],
    ['a recording, by its seconds', wave(10), 'openai', 101],
    [
      'a damaged image',
      Buffer.concat([Buffer.from('\x89PNG', 'latin1'), Buffer.alloc(2_000, 9)]),
      'anthropic',
      unknownMediaTokens,
    ],
  ])('%s', (_, bytes, wire, tokens) => {
    const data = bytes.toString('base64')
    for (const written of [data, `data:application/octet-stream;base64,${data}`]) {
      const weight = weightOf(holding(written), wire)
      expect(weight.mediaTokens).toBe(tokens)
      expect(weight.textBytes).toBeLessThan(260)
    }
  })

  it('escaped slashes change nothing; several count each', () => {
    const data = png(1_000, 750, 20_000).toString('base64')
    const body = JSON.stringify({ images: [data, data], text: 'x' }).replaceAll('/', '\\/')
    expect(weightOf(body).mediaTokens).toBe(2_000)
    expect(weightOf(holding(`data:image/png;base64,${data}`).replaceAll('/', '\\/')).mediaTokens).toBe(1_000)
  })

  it('a signature is text; unknown data that says it is data is a stated constant', () => {
    const noise = Buffer.alloc(3_000, 'abc').toString('base64')
    expect(weightOf(holding(noise)).mediaTokens).toBe(0)
    expect(weightOf(holding(`data:x/y;base64,${noise}`)).mediaTokens).toBe(unknownMediaTokens)
  })

  it('files of a form are media, its fields are text, and a recording is no text', () => {
    const part = (head: string, content: Buffer | string) =>
      Buffer.concat([
        Buffer.from(`--b\r\ncontent-disposition: form-data; ${head}\r\n\r\n`),
        Buffer.from(content),
        Buffer.from('\r\n'),
      ])
    const form = Buffer.concat([
      part('name="file"; filename="a.wav"', wave(20)),
      part('name="prompt"', 'word '.repeat(80)),
      Buffer.from('--b--\r\n'),
    ])
    const type = 'multipart/form-data; boundary=b'
    expect(weightOf(form, 'openai', type)).toEqual({ mediaTokens: 201, textBytes: 400 })
    const whole = weigh({ body: wave(20), wire: 'openai', rule: 'media', contentType: 'audio/wav' })
    expect(whole).toEqual({ mediaTokens: 201, textBytes: 0 })
    // Of an upload that still arrives, the beginning of its file and its size are enough.
    const beginning = form.subarray(0, 2_000)
    const begun = {
      body: beginning,
      totalBytes: form.byteLength,
      wire: 'openai' as const,
      rule: 'form' as const,
    }
    expect(weigh({ ...begun, contentType: type }).mediaTokens).toBe(201)
  })

  it('never throws, whatever the bytes', () => {
    fc.assert(fc.property(fc.uint8Array({ maxLength: 3_000 }), (bytes) => void weightOf(Buffer.from(bytes))))
    const starts = fc.constantFrom(
      '\x89PNG\r\n\x1a\n',
      '\xff\xd8\xff',
      '%PDF-',
      'RIFF0000WAVE',
      'RIFF0000WEBP',
      'GIF89a',
    )
    fc.assert(
      fc.property(starts, fc.uint8Array({ minLength: 1_500, maxLength: 3_000 }), (start, bytes) => {
        const data = Buffer.concat([Buffer.from(start, 'latin1'), Buffer.from(bytes)]).toString('base64')
        expect(weightOf(holding(data)).mediaTokens).toBeGreaterThanOrEqual(0)
      }),
    )
  })
})

/** Tokens that tokenizers of both vendors make of such texts, roughly: the estimate is to be within a factor of two. */
describe('text', () => {
  it.each([
    ['English', 'The quick brown fox jumps over the lazy dog. '.repeat(100), 1_000],
    ['digits', '8271940365 '.repeat(100), 450],
    ['CJK', '你好世界這是一個測試'.repeat(100), 1_000],
    ['Cyrillic', 'Съешь ещё этих мягких французских булок '.repeat(50), 700],
    ['emoji', '🙂🎉'.repeat(200), 800],
  ])('%s is within a factor of two, escaped by JSON or not', (_, text, tokens) => {
    const escaped = JSON.stringify(text).replaceAll(
      /[\u0080-\uffff]/g,
      (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`,
    )
    for (const body of [JSON.stringify(text), escaped]) {
      const estimate = makeBytesEstimator().estimate(weightOf(body), 's')
      expect(estimate).toBeGreaterThan(tokens / 2)
      expect(estimate).toBeLessThan(tokens * 2)
    }
  })

  it('samples of a long text weigh what all of it weighs', () => {
    const mixed = `${'plain words '.repeat(40)}${'123456 '.repeat(40)}${'測試'.repeat(40)}`.repeat(600)
    const part = weightOf(mixed.slice(0, 20_000)).textBytes / Buffer.byteLength(mixed.slice(0, 20_000))
    const whole = weightOf(mixed).textBytes / Buffer.byteLength(mixed)
    expect(whole / part).toBeGreaterThan(0.9)
    expect(whole / part).toBeLessThan(1.1)
  })
})

const used = (inputTokens: number | null, outputTokens: number | null = null) => ({
  inputTokens,
  outputTokens,
})
const text = { textBytes: 4_000, mediaTokens: 0 }
const settled = (weight = text, priorityClass = 'orchestration' as const, estimated = 1_000) => ({
  ...{ weight, scope: 's', priorityClass, estimated },
})

describe('what is learned', () => {
  it('is the ratio of text, by scope', () => {
    const estimator = makeBytesEstimator()
    expect(estimator.estimate(text, 's')).toBe(1_000)
    for (let call = 0; call < 20; call += 1)
      estimator.learn(settled(text, 'orchestration', estimator.estimate(text, 's') as 1_000), used(400))
    expect([estimator.estimate(text, 's'), estimator.estimate(text, 'other')]).toEqual([400, 1_000])
    expect(estimator.readings()['s']?.samples).toBe(20)
    expect(estimator.readings()['s']?.meanErrorRatio).toBeLessThan(0.1)
    estimator.forget?.('s')
    expect(estimator.estimate(text, 's')).toBe(1_000)
  })

  it('is nothing of media, a bounded step of an outlier, and nothing of usage that says nothing', () => {
    const estimator = makeBytesEstimator()
    estimator.learn(settled({ textBytes: 200, mediaTokens: 1_600 }), used(1_650))
    expect(estimator.estimate(text, 's')).toBe(1_000)
    estimator.learn(settled(), used(1))
    expect(estimator.estimate(text, 's')).toBeGreaterThanOrEqual(250)
    estimator.learn(settled(), used(4_000_000))
    expect(estimator.estimate(text, 's')).toBeLessThanOrEqual(4_000)
    const before = estimator.estimate(text, 's')
    for (const nothing of [used(null), used(0)]) estimator.learn(settled(), nothing)
    expect(estimator.estimate(text, 's')).toBe(before)
  })

  it('is the output of each scope and class, within what a request allows', () => {
    const estimator = makeBytesEstimator()
    const ask = (
      priorityClass: 'interactive' | 'orchestration',
      maxOutputTokens: number | null,
      scope = 's',
    ) => estimator.estimateOutput({ scope, priorityClass, maxOutputTokens })
    expect([ask('orchestration', 64_000), ask('orchestration', 8), ask('orchestration', null)]).toEqual([
      512, 8, 512,
    ])
    for (let call = 0; call < 30; call += 1) estimator.learn(settled(), used(null, 2_000))
    expect([ask('orchestration', 64_000), ask('orchestration', 1_000)]).toEqual([2_000, 1_000])
    expect([ask('interactive', 64_000), ask('orchestration', 64_000, 'other')]).toEqual([512, 512])
  })
})

it.each([
  ['anthropic', 'anthropic'],
  ['vertex-gemini', 'gemini'],
  ['openrouter', 'openai'],
] as const)('the rules of %s are those of %s', (provider, wire) => {
  expect(wireOfProvider(provider)).toBe(wire)
})

describe('through the gateway', () => {
  it('an image of 1.2 MB is no refusal, and the text after it is estimated as before', async () => {
    const upstream = await startUpstream()
    const setting = await startSetting({ upstream, policy: { limits: { inputTokensPerMinute: 200_000 } } })
    const image = holding(png(2_000, 1_500, 1_200_000).toString('base64'))
    const model = (body: string) => body.replace('{', '{"model":"m",')
    const seen = post(setting.scripted, {}, { body: model(image) })
    answerJson(await upstream.next(), { input_tokens: 1_610, output_tokens: 5 })
    expect((await seen).status).toBe(200)
    // 1.2 MB of text are 300,000 tokens: more than the limit ever has.
    const long = await post(setting.scripted, {}, { body: model(holding('', 'word '.repeat(240_000))) })
    expect(long.status).toBe(413)
  })

  it('a declared limit of output holds calls back by what they are expected to write', async () => {
    const upstream = await startUpstream()
    const setting = await startSetting({ upstream, policy: { limits: { outputTokensPerMinute: 1_000 } } })
    const body = JSON.stringify({ model: 'm', max_tokens: 64_000, messages: [] })
    const calls = Array.from({ length: 5 }, () => post(setting.scripted, {}, { body }).catch(() => null))
    await upstream.next()
    await vi.waitFor(() => expect(setting.waiting()).toBe(4))
    expect(upstream.arrivals.length).toBe(1)
    for (const { response } of upstream.arrivals) response.destroy()
    void calls
  })
})
