/** How many tokens of output a request allows its answer: what some providers take from a limit at admission. */
import { maxTokens } from '../../../machines/index.ts'
import { memberAt } from './members.ts'

/** Top-level members that state it: Anthropic and older OpenAI, OpenAI and Cerebras, OpenAI Responses. */
const members: ReadonlyArray<string> = ['max_tokens', 'max_completion_tokens', 'max_output_tokens']
/** Members one level down: Gemini (in both spellings that it takes), Bedrock Converse, OpenAI Realtime. */
const nested: ReadonlyArray<readonly [holder: string, member: string]> = [
  ['generationConfig', 'maxOutputTokens'],
  ['generation_config', 'max_output_tokens'],
  ['inferenceConfig', 'maxTokens'],
  ['response', 'max_output_tokens'],
]

/** The largest maximum that the body states; null when it states none that can be counted. */
export const maxOutputIn = (body: Buffer): number | null => {
  let most: number | null = null
  const take = (count: number | null): void => {
    if (count !== null) most = Math.max(most ?? 0, count)
  }
  for (const name of members) take(countAt(body, memberAt(body, name)))
  for (const [holder, member] of nested) {
    const at = memberAt(body, holder)
    if (at === null) continue
    const inside = body.subarray(at)
    take(countAt(inside, memberAt(inside, member)))
  }
  return most
}

/** A whole number as JSON writes it; null for anything else, and for more than a call can have. */
const countAt = (body: Buffer, at: number | null): number | null => {
  if (at === null) return null
  const digits = /^\d{1,10}(?=[\s,}]|$)/.exec(body.toString('latin1', at, at + 11))?.[0]
  const count = digits === undefined ? Number.NaN : Number(digits)
  return count <= maxTokens ? count : null
}
