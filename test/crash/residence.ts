/**
 * A residence in a process of its own: it asks for all of its calls, and again after every restart
 * under the same ids. It prints the outcome of each. It is made to be killed.
 */
import { openHost } from '../../src/index.ts'

const [journal, provider, count] = process.argv.slice(2) as [string, string, string]

const host = await openHost({ journal })
const scope = host.scope(
  { provider: 'anthropic', credential: 'k1', model: 'm' },
  { capacity: 4, drainIntervalMs: 0 },
)

const call = async (id: string, lane: 'primary' | 'auxiliary'): Promise<string> => {
  try {
    await scope.run({ id, lane, inputTokens: lane === 'primary' ? 181_000 : 60_000 }, async (permit) => {
      const answer = await fetch(`${provider}/v1/messages`, {
        method: 'POST',
        signal: permit.signal,
        headers: {
          'content-type': 'application/json',
          'x-api-key': 'k',
          'x-emulator-call-id': id,
          'x-emulator-input-tokens': '1000',
        },
        body: JSON.stringify({ model: 'm', max_tokens: 8, messages: [{ role: 'user', content: 'hello' }] }),
      })
      permit.accepted()
      return answer.json()
    })
    return 'completed'
  } catch (error) {
    return (error as { _tag?: string })._tag ?? String(error)
  }
}

process.stdout.write('open\n')
const calls = Array.from({ length: Number(count) }, (_, index) => {
  const lane = index % 5 === 4 ? 'primary' : 'auxiliary'
  const id = `${lane}-${index}`
  return call(id, lane).then((outcome) => process.stdout.write(`${id} ${outcome}\n`))
})
await Promise.all(calls)
await host.close()
process.stdout.write('done\n')
