/** A process that serves a person when its parent says so. */
import { type Lease, openLeases } from '../../src/leases/leases.ts'

const [folder, options] = process.argv.slice(2) as [string, string]
const leases = openLeases(folder, JSON.parse(options))
const held: Array<Lease> = []
let finish = () => {}

async function* answer(): AsyncGenerator<string> {
  yield 'first'
  await new Promise<void>((resolve) => {
    finish = resolve
  })
  yield 'last'
}

const act: Readonly<Record<string, () => Promise<void>>> = {
  hold: async () => {
    const lease = leases.hold()
    held.push(lease)
    await lease.published
  },
  release: async () => {
    finish()
    await held.pop()?.release()
  },
  stream: async () => {
    const chunks = leases.throughout(answer())
    await chunks.next()
    void (async () => {
      for await (const _ of chunks);
    })()
  },
}

process.on('message', (word: string) => {
  void act[word]!().then(() => process.send!(word))
})
process.on('disconnect', () => process.exit())
