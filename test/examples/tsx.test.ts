/** Examples run by `tsx` from the sources, without a build, under every Node that this machine has. */
import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'
import { folder, oldNode } from '../cli/program.ts'

const root = fileURLToPath(new URL('../..', import.meta.url))
const run = (node: string, ...args: ReadonlyArray<string>) =>
  spawnSync(node, [join('node_modules', 'tsx', 'dist', 'cli.mjs'), 'examples/first-call.ts', ...args], {
    cwd: root,
    encoding: 'utf8',
  })

const story = /still waits .*\nthe person is answered\nthe memories are merged\n2 calls completed\n$/

describe('the first call', () => {
  it('runs under this Node, in memory and in a file', () => {
    for (const args of [[], [join(folder(), 'lanes.db')]])
      expect(run(process.execPath, ...args)).toMatchObject({
        status: 0,
        stdout: expect.stringMatching(story),
      })
  })

  it.skipIf(oldNode === null)(
    'runs in memory under a Node without SQLite, and says what a file needs',
    () => {
      expect(run(oldNode as string)).toMatchObject({ status: 0, stdout: expect.stringMatching(story) })
      const { status, stderr } = run(oldNode as string, join(folder(), 'lanes.db'))
      expect(status).toBe(1)
      expect(stderr).toMatch(
        /JournalUnavailable: journal .*lanes\.db: needs node:sqlite, which Node [\d.]+ does not have; run Node 22\.19 or newer, or pass ':memory:'\n/,
      )
    },
  )
})
