/** The names that providers appear under, mapped to families whose answers share a shape. */

export const families = [
  'anthropic',
  'azure',
  'bedrock',
  'dashscope',
  'deepseek',
  'fireworks',
  'gemini',
  'groq',
  'litellm',
  'minimax',
  'mistral',
  'moonshot',
  'openai',
  'openrouter',
  'together',
  'vllm',
  'volcengine',
  'xai',
  'zai',
] as const
export type Family = (typeof families)[number]

/** Longer and more specific names first: `azure-openai` is Azure, `vertex-anthropic` answers as Google. */
const spellings: ReadonlyArray<readonly [string, Family]> = [
  ['openrouter', 'openrouter'],
  ['litellm', 'litellm'],
  ['azure', 'azure'],
  ['apim', 'azure'],
  ['vertex', 'gemini'],
  ['gemini', 'gemini'],
  ['google', 'gemini'],
  ['bedrock', 'bedrock'],
  ['amazon', 'bedrock'],
  ['aws', 'bedrock'],
  ['anthropic', 'anthropic'],
  ['claude', 'anthropic'],
  ['groq', 'groq'],
  ['mistral', 'mistral'],
  ['together', 'together'],
  ['fireworks', 'fireworks'],
  ['deepseek', 'deepseek'],
  ['xai', 'xai'],
  ['x-ai', 'xai'],
  ['x.ai', 'xai'],
  ['grok', 'xai'],
  ['dashscope', 'dashscope'],
  ['qwen', 'dashscope'],
  ['alibaba', 'dashscope'],
  ['aliyun', 'dashscope'],
  ['moonshot', 'moonshot'],
  ['kimi', 'moonshot'],
  ['vllm', 'vllm'],
  ['sglang', 'vllm'],
  ['minimax', 'minimax'],
  ['volc', 'volcengine'],
  ['doubao', 'volcengine'],
  ['byteplus', 'volcengine'],
  ['zai', 'zai'],
  ['z-ai', 'zai'],
  ['z.ai', 'zai'],
  ['zhipu', 'zai'],
  ['bigmodel', 'zai'],
  ['openai', 'openai'],
]

/** The family of a provider's name, or null for a name that says nothing about the shape of its answers. */
export const familyOf = (name: unknown): Family | null => {
  if (typeof name !== 'string') return null
  const folded = name.slice(0, 80).toLowerCase()
  return spellings.find(([spelling]) => folded.includes(spelling))?.[1] ?? null
}
