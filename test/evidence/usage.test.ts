import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { readUsage } from '../../src/evidence/index.ts'

describe('usage of a complete answer', () => {
  it.each([
    [
      'Anthropic counts fresh input and cache writes',
      'anthropic',
      {
        type: 'message',
        usage: {
          input_tokens: 10,
          cache_creation_input_tokens: 100,
          cache_read_input_tokens: 5000,
          output_tokens: 7,
        },
      },
      [110, 7, 5000, 100],
    ],
    [
      'Anthropic without a cache',
      'anthropic',
      { type: 'message', usage: { input_tokens: 10, output_tokens: 7 } },
      [10, 7, 0, 0],
    ],
    [
      'OpenAI chat counts the whole prompt',
      'openai',
      {
        choices: [],
        usage: {
          prompt_tokens: 40,
          completion_tokens: 9,
          total_tokens: 49,
          prompt_tokens_details: { cached_tokens: 32 },
        },
      },
      [40, 9, 32, 0],
    ],
    [
      'OpenAI responses count the whole input',
      'openai',
      {
        object: 'response',
        usage: { input_tokens: 40, input_tokens_details: { cached_tokens: 8 }, output_tokens: 9 },
      },
      [40, 9, 8, 0],
    ],
    [
      'Gemini adds thoughts to the output',
      'gemini',
      {
        usageMetadata: {
          promptTokenCount: 21,
          cachedContentTokenCount: 4,
          candidatesTokenCount: 3,
          thoughtsTokenCount: 30,
        },
      },
      [21, 33, 4, 0],
    ],
    [
      'Bedrock spells them in camel case',
      'bedrock',
      { usage: { inputTokens: 5, outputTokens: 6, cacheReadInputTokens: 7, cacheWriteInputTokens: 8 } },
      [13, 6, 7, 8],
    ],
    [
      'DeepSeek names its cache hits',
      'deepseek',
      { usage: { prompt_tokens: 12, completion_tokens: 1, prompt_cache_hit_tokens: 11 } },
      [12, 1, 11, 0],
    ],
    [
      'an unknown provider is read by its shape',
      'somebody-new',
      { usage: { prompt_tokens: 12, completion_tokens: 1 } },
      [12, 1, 0, 0],
    ],
    [
      'a number that is none counts as nothing',
      'openai',
      { usage: { prompt_tokens: -3, completion_tokens: 'many' } },
      [0, 0, 0, 0],
    ],
  ] as const)(
    '%s',
    (_says, provider, body, [inputTokens, outputTokens, cacheReadTokens, cacheWriteTokens]) => {
      expect(readUsage(provider, body)).toEqual({
        inputTokens,
        // On the wires that count a cache read apart, the whole prompt is more than what counts.
        allInputTokens: /anthropic|bedrock/.test(provider) ? inputTokens + cacheReadTokens : inputTokens,
        outputTokens,
        cacheReadTokens,
        cacheWriteTokens,
      })
    },
  )

  it.each([
    ['a refusal', { error: { message: 'no' } }],
    ['usage of another kind', { usage: { seconds: 4 } }],
    ['no usage', { usage: null }],
    ['text', 'usage'],
    ['nothing', undefined],
  ])('is null for %s', (_what, body) => {
    expect(readUsage('openai', body)).toBe(null)
  })

  it('never throws and never counts below zero', () => {
    fc.assert(
      fc.property(fc.jsonValue(), fc.jsonValue(), (usage, more) => {
        const read = readUsage('x', {
          usage,
          response: more,
          ...(typeof usage === 'object' ? { usageMetadata: usage } : {}),
        })
        if (read !== null) expect(Math.min(...Object.values(read))).toBeGreaterThanOrEqual(0)
      }),
    )
  })
})
