import Anthropic from '@anthropic-ai/sdk'
import { fingerprint, openHost } from 'rightofway'

export const quickstart = async (key: string, baseURL: string): Promise<string> => {
  // README: embed
  await using host = await openHost({ journal: ':memory:' }) // or a path: 'lanes.db'
  const opus = host.scope({ provider: 'anthropic', credential: fingerprint(key), model: 'claude-opus' })
  // The scope decides when to try again, so the SDK's own retries are off.
  const anthropic = new Anthropic({ apiKey: key, baseURL, maxRetries: 0 })

  const message = await opus.run({ lane: 'primary', inputTokens: 181_000 }, (permit) =>
    anthropic.messages.create(
      { model: 'claude-opus', max_tokens: 64, messages: [{ role: 'user', content: 'Good morning.' }] },
      { signal: permit.signal },
    ),
  )
  // README: end
  return message.content.map((block) => (block.type === 'text' ? block.text : '')).join('')
}
