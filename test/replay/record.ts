/**
 * Records the golden journals again: `node test/replay/record.ts` for all of them, or with the
 * names of scenes. Do it only when decisions are meant to change; the diff of the files, or the
 * output of the failing test, belongs in the commit message.
 */
import { writeFileSync } from 'node:fs'
import { goldenPath, record } from './golden.ts'
import { scenes } from './scenes.ts'

const wanted = process.argv.slice(2)
for (const scene of wanted.length > 0 ? wanted : Object.keys(scenes)) {
  writeFileSync(goldenPath(scene), await record(scene))
  console.log(`recorded ${goldenPath(scene)}`)
}
