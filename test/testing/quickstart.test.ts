/** The quickstart of a replay test, as docs/library.md shows it. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'

// DOCS: replay
import { loadJournal, play, type Step } from 'rightofway/testing'
import 'rightofway/testing/vitest'
import { expect, it } from 'vitest'

it('the merge that waited goes once the conversation has been answered', async () => {
  const from = (await loadJournal('test/testing/incident.ndjson')).scope('anthropic/k/opus')
  const answered: Step[] = [{ at: 2_000, settle: 'turn-1' }]
  expect(play({ capacity: 4 }, [...answered, { at: 60_000, pass: true }], { from })).toAdmit('merge')
})
// DOCS: end

it('is shown in docs/library.md as it is', () => {
  const source = readFileSync(import.meta.filename, 'utf8')
  const [, shown] = source.split(/\/\/ DOCS: replay\n|\/\/ DOCS: end\n/)
  expect(shown!.trim().split('\n').length).toBeLessThanOrEqual(10)
  expect(readFileSync(join(import.meta.dirname, '../../docs/library.md'), 'utf8')).toContain(shown!.trim())
})
