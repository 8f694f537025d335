/** Runs calls until the disk of its journal is full, and prints the outcome. */
import { writeSync } from 'node:fs'
import { openHost } from '../../src/host/host.ts'

const host = await openHost({ journal: process.argv[2] as string })
const scope = host.scope('pool', { capacity: 8 })
for (let n = 0; ; n += 1) {
  try {
    await scope.run({ id: `call-${n}-${'x'.repeat(200)}` }, async () => writeSync(1, `ran ${n}\n`))
  } catch (error) {
    const { _tag, message } = error as { _tag?: string; message: string }
    writeSync(1, `${_tag}: ${message}\n`)
    process.exit(0)
  }
}
