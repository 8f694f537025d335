/** Token usage of one answer on any wire, counted as its provider's limiter counts. */
import { isObject, type JsonObject } from './answer.ts'

export interface Usage {
  /**
   * Input tokens that count against the input limit, >= 0. Anthropic and Bedrock: fresh input plus cache
   * writes, without cache reads. OpenAI and Gemini: all prompt tokens, cached ones included.
   */
  readonly inputTokens: number
  /** All input tokens, those read from a cache included, >= 0. */
  readonly allInputTokens: number
  /** Output tokens including reasoning, >= 0. */
  readonly outputTokens: number
  /** Input served from a cache, >= 0. Part of `inputTokens` only on the OpenAI and Gemini wires. */
  readonly cacheReadTokens: number
  /** Input written to a cache, >= 0. Always part of `inputTokens`. */
  readonly cacheWriteTokens: number
}

/**
 * Usage of a complete JSON answer; null when it states none. The shape decides. The provider's name only
 * settles the one ambiguity, `input_tokens` without details, where both readings give the same numbers.
 */
export const readUsage = (provider: string, body: unknown): Usage | null => {
  if (!isObject(body)) return null
  const holders = [body, body['response'], body['message'], body['x_groq']].filter(isObject)
  for (const holder of holders) {
    const stated = holder['usage'] ?? holder['usageMetadata']
    const usage = isObject(stated) ? usageOf(provider, stated) : null
    if (usage !== null) return usage
  }
  return null
}

/** Usage from the usage object itself; null when it is in no known shape. */
export const usageOf = (provider: string, stated: JsonObject): Usage | null => {
  if ('promptTokenCount' in stated || 'candidatesTokenCount' in stated) return geminiUsage(stated)
  if ('prompt_tokens' in stated) return chatUsage(stated)
  if ('inputTokens' in stated)
    return isObject(stated['inputTokens']) ? languageModelUsage(provider, stated) : converseUsage(stated)
  if (!('input_tokens' in stated) && !('output_tokens' in stated)) return null
  const anthropic = 'cache_read_input_tokens' in stated || 'cache_creation_input_tokens' in stated
  if (anthropic || (/anthropic|claude/i.test(provider) && !('input_tokens_details' in stated)))
    return messagesUsage(stated)
  return responsesUsage(stated)
}

const messagesUsage = (stated: JsonObject): Usage => {
  const cacheWriteTokens = count(stated['cache_creation_input_tokens'])
  const cacheReadTokens = count(stated['cache_read_input_tokens'])
  const inputTokens = count(stated['input_tokens']) + cacheWriteTokens
  return {
    inputTokens,
    allInputTokens: inputTokens + cacheReadTokens,
    outputTokens: count(stated['output_tokens']),
    cacheReadTokens,
    cacheWriteTokens,
  }
}

const responsesUsage = (stated: JsonObject): Usage => {
  return {
    inputTokens: count(stated['input_tokens']),
    allInputTokens: count(stated['input_tokens']),
    outputTokens: count(stated['output_tokens']),
    cacheReadTokens: count(member(stated['input_tokens_details'], 'cached_tokens')),
    cacheWriteTokens: 0,
  }
}

const chatUsage = (stated: JsonObject): Usage => {
  const cached = member(stated['prompt_tokens_details'], 'cached_tokens') ?? stated['prompt_cache_hit_tokens']
  return {
    inputTokens: count(stated['prompt_tokens']),
    allInputTokens: count(stated['prompt_tokens']),
    outputTokens: count(stated['completion_tokens']),
    cacheReadTokens: count(cached),
    cacheWriteTokens: 0,
  }
}

const geminiUsage = (stated: JsonObject): Usage => {
  const inputTokens = count(stated['promptTokenCount']) + count(stated['toolUsePromptTokenCount'])
  return {
    inputTokens,
    allInputTokens: inputTokens,
    outputTokens: count(stated['candidatesTokenCount']) + count(stated['thoughtsTokenCount']),
    cacheReadTokens: count(stated['cachedContentTokenCount']),
    cacheWriteTokens: 0,
  }
}

const converseUsage = (stated: JsonObject): Usage => {
  const cacheWriteTokens = count(stated['cacheWriteInputTokens'])
  const cacheReadTokens = count(stated['cacheReadInputTokens'])
  const inputTokens = count(stated['inputTokens']) + cacheWriteTokens
  return {
    inputTokens,
    allInputTokens: inputTokens + cacheReadTokens,
    outputTokens: count(stated['outputTokens']),
    cacheReadTokens,
    cacheWriteTokens,
  }
}

/** The AI SDK's language models: `total` is the whole prompt. */
const languageModelUsage = (provider: string, stated: JsonObject): Usage => {
  const { inputTokens: input, outputTokens: output } = stated
  const cacheWriteTokens = count(member(input, 'cacheWrite'))
  const allInputTokens = count(member(input, 'total'))
  const fresh = count(member(input, 'noCache')) + cacheWriteTokens
  return {
    inputTokens: /anthropic|claude|bedrock/i.test(provider) && fresh > 0 ? fresh : allInputTokens,
    allInputTokens,
    outputTokens: count(member(output, 'total')),
    cacheReadTokens: count(member(input, 'cacheRead')),
    cacheWriteTokens,
  }
}

const member = (value: unknown, key: string): unknown => {
  return isObject(value) ? value[key] : undefined
}

const count = (value: unknown): number => {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0 ? value : 0
}
