import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { makeEventCutter } from '../../src/evidence/event-bytes.ts'
import { eventCapBytes, makeStreamReader } from '../../src/evidence/index.ts'

const encoder = new TextEncoder()

const event = (name: string, data: unknown): string => {
  return `${name === '' ? '' : `event: ${name}\n`}data: ${JSON.stringify(data)}\n\n`
}

describe('the bound on memory', () => {
  it('keeps one event of bounded size, and finds the usage at the end of a longer one', () => {
    const output = [{ type: 'message', content: [{ type: 'output_text', text: 'x'.repeat(3_000_000) }] }]
    const data = {
      type: 'response.completed',
      response: { status: 'completed', output, usage: { input_tokens: 5, output_tokens: 9 } },
    }
    const reader = makeStreamReader('openai')
    const bytes = encoder.encode(event('response.completed', data))
    for (let at = 0; at < bytes.length; at += 16_384) reader.push(bytes.subarray(at, at + 16_384))
    expect(reader).toMatchObject({ usage: { inputTokens: 5, outputTokens: 9 }, done: true })
  })

  it('hands on at most its cap, of a line and of many lines', () => {
    const sizes: number[] = []
    const cutter = makeEventCutter(({ data }) => {
      sizes.push(data.length)
    })
    cutter.push(encoder.encode(`data: ${'y'.repeat(1_000_000)}\n\n${'data: z\n'.repeat(200_000)}\n`))
    cutter.push(encoder.encode('data: {"a":1}\n\n'))
    expect(sizes).toHaveLength(3)
    expect(Math.max(...sizes)).toBeLessThanOrEqual(eventCapBytes)
    expect(sizes[2]).toBe(7)
  })

  it('ignores a byte order mark', () => {
    const names: string[] = []
    const cutter = makeEventCutter(({ name }) => {
      names.push(name)
    })
    cutter.push(encoder.encode('\uFEFFevent: ping\ndata: {}\n\n'))
    expect(names).toEqual(['ping'])
  })

  it('never throws, whatever passes', () => {
    fc.assert(
      fc.property(
        fc.array(
          fc.oneof(
            fc.uint8Array({ maxLength: 300 }),
            fc.string().map((text) => encoder.encode(`data: ${text}\n\n`)),
          ),
        ),
        (chunks) => {
          const reader = makeStreamReader('x')
          for (const chunk of chunks) reader.push(chunk)
          reader.push('not bytes' as unknown as Uint8Array)
          reader.end()
          expect(typeof reader.done).toBe('boolean')
        },
      ),
    )
  })

  it('passes ordinary deltas quickly', () => {
    const chunk = encoder.encode(
      event('content_block_delta', {
        type: 'content_block_delta',
        index: 0,
        delta: { type: 'text_delta', text: 'word ' },
      }).repeat(100),
    )
    const chat = encoder.encode(
      event('', {
        id: 'c',
        object: 'chat.completion.chunk',
        choices: [{ index: 0, delta: { content: 'word ' } }],
        usage: null,
      }).repeat(100),
    )
    const [first, second] = [makeStreamReader('anthropic'), makeStreamReader('openai')]
    const startedMs = performance.now()
    for (let round = 0; round < 500; round++) {
      first.push(chunk)
      second.push(chat)
    }
    // 100,000 events. Some tenths of a second where the machine is idle; parsing each would take seconds.
    expect(performance.now() - startedMs).toBeLessThan(5000)
    expect(first.firstTokenSeen && second.firstTokenSeen).toBe(true)
  })
})
