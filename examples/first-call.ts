/**
 * A primary goes first, background work waits and still gets done. Needs no key and no network:
 *
 *   npx tsx examples/first-call.ts              keeps its journal in memory
 *   npx tsx examples/first-call.ts lanes.db     keeps it in a file
 */
import { openHost } from 'rightofway'

const [journal = ':memory:'] = process.argv.slice(2)
await using host = await openHost({ journal })
const scope = host.scope('example', { capacity: 2, reserve: 1 })

/** Stands for a call to the provider. */
const answer = (words: string, ms: number): Promise<string> =>
  new Promise((resolve) => {
    setTimeout(() => {
      console.log(words)
      resolve(words)
    }, ms)
  })

const person = scope.run({ lane: 'primary', inputTokens: 1_000 }, () => answer('the person is answered', 50))
const memory = scope.run({ id: 'merge', lane: 'auxiliary', inputTokens: 1_000 }, () =>
  answer('the memories are merged', 10),
)
console.log((await host.explain('merge'))?.lines[0])
await Promise.all([person, memory])

const { counters } = scope.status
console.log(`${counters.completed} calls completed`)
