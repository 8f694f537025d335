/** `rightofway journal export` and `import`, as a user runs them. */
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { importJournal } from '../../src/journal/transfer.ts'
import { folder, Program, run } from '../cli/program.ts'
import { goldenPath } from './golden.ts'

it('moves a journal to another machine to the byte, through files and pipes', {
  timeout: 60_000,
}, async () => {
  const at = folder()
  const golden = readFileSync(goldenPath('restart'), 'utf8')
  await importJournal(join(at, 'one.db'), golden.split('\n'))
  const piped = await run(['journal', 'export', '--journal', 'one.db'], at)
  expect([piped.code, piped.err]).toEqual([0, ''])
  expect(piped.out).toBe(golden)
  const filed = await run(['journal', 'export', '--journal', 'one.db', '--out', 'one.ndjson'], at)
  expect(filed.out).toBe('journal one.db: wrote 16 lines to one.ndjson\n')
  expect(readFileSync(join(at, 'one.ndjson'), 'utf8')).toBe(golden)
  const taken = await run(['journal', 'import', 'one.ndjson', '--journal', 'two.db'], at)
  expect(taken.out).toBe('journal two.db: took 13 entries and 1 checkpoint\n')
  const stdin = await new Program(['journal', 'import', '-', '--journal', 'three.db', '--json'], at).input(
    golden,
  ).finished
  expect(JSON.parse(stdin.out)).toEqual({ entries: 13, checkpoints: 1 })
  expect((await run(['journal', 'export', '--journal', 'three.db'], at)).out).toBe(golden)
})

it('refuses in one line what it cannot do, and leaves nothing half done', { timeout: 60_000 }, async () => {
  const at = folder()
  writeFileSync(join(at, 'kept.ndjson'), 'something')
  writeFileSync(
    join(at, 'cut.ndjson'),
    readFileSync(goldenPath('settle'), 'utf8').split('\n').slice(0, 9).join('\n'),
  )
  await importJournal(join(at, 'one.db'), readFileSync(goldenPath('settle'), 'utf8').split('\n'))
  const refusals = await Promise.all([
    run(['journal', 'export', '--journal', 'one.db', '--out', 'kept.ndjson'], at),
    run(['journal', 'export', '--journal', 'none.db'], at),
    run(['journal', 'import', 'cut.ndjson', '--journal', 'two.db'], at),
    run(['journal', 'import', 'none.ndjson', '--journal', 'three.db'], at),
    run(['journal', 'import', 'cut.ndjson', '--journal', 'one.db'], at),
  ])
  expect(refusals.map(({ code, out }) => [code, out])).toEqual(refusals.map(() => [1, '']))
  expect(refusals.map(({ err }) => err)).toEqual([
    expect.stringMatching(/^rightofway: EEXIST: .*kept\.ndjson'\n$/),
    expect.stringMatching(/none\.db: does not exist; check the path\n$/),
    expect.stringMatching(
      /line 9: the export ends here without its last line; it was cut; nothing was imported\n$/,
    ),
    expect.stringMatching(/^rightofway: import none\.ndjson: ENOENT.*\n$/),
    expect.stringMatching(/is not empty \(its last entry is 14\); import into a new path/),
  ])
  expect(readFileSync(join(at, 'kept.ndjson'), 'utf8')).toBe('something')
})
