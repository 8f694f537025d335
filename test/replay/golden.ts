/** Golden journals as files: exports (`rightofway journal export`), a few kilobytes each. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Checkpoint, StoredEntry } from '../../src/journal/journal.ts'
import { type JournalHistory, openMemoryJournal } from '../../src/journal/memory.ts'
import { scenes } from './scenes.ts'

export const goldenPath = (scene: string): string => join(import.meta.dirname, `${scene}.ndjson`)

/** A scene's journal as an export's lines: its entries, and the checkpoints that its host wrote when it closed. */
export const record = async (scene: string): Promise<string> => {
  const story = scenes[scene]
  if (story === undefined) throw new Error(`no scene ${scene}; there are ${Object.keys(scenes).join(', ')}`)
  const { entries, checkpoints } = (await story(openMemoryJournal())).survivors()
  const lines = [
    { journal: 'rightofway', version: 1, retainedAfter: 0 },
    ...checkpoints.map((checkpoint) => ({ checkpoint })),
    // In the order of fields that an export has.
    ...entries.map(({ position, at, scope, record }) => ({ entry: { position, at, scope, record } })),
    { end: { checkpoints: checkpoints.length, entries: entries.length } },
  ]
  return lines.map((line) => `${JSON.stringify(line)}\n`).join('')
}

/** The content of a golden file. */
export const readGolden = (scene: string): JournalHistory => {
  const entries: StoredEntry[] = []
  const checkpoints: Checkpoint[] = []
  for (const line of readFileSync(goldenPath(scene), 'utf8').trim().split('\n')) {
    const value = JSON.parse(line) as { entry?: StoredEntry; checkpoint?: Checkpoint }
    if (value.entry !== undefined) entries.push(value.entry)
    if (value.checkpoint !== undefined) checkpoints.push(value.checkpoint)
  }
  return { entries, checkpoints }
}
