/** The arena's bench, small. */
import { execFileSync } from 'node:child_process'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { losesTo } from './arena-table.ts'

const script = join(import.meta.dirname, 'arena.ts')
const run = (...flags: ReadonlyArray<string>): string =>
  execFileSync(process.execPath, [script, '--seeds', '2', ...flags], {
    encoding: 'utf8',
  })

test('prints a row per scenario asked for, the bound beside the policies', () => {
  const lines = run('--only', 'token-bucket-stated').trim().split('\n')
  expect(lines[2]).toMatch(
    /^\| scenario \| rightofway-adaptive \| headroom \| headroom-told \| bottleneck-reservoir \| oracle \| clairvoyant \|/,
  )
  expect(lines).toHaveLength(5)
  expect(lines[4]).toMatch(
    /^\| token-bucket-stated( \| [\d.]+ \([\d.]+\) \/ [\d.]+ \/ \d+[^|]*){5} \| [\d.]+ \(/,
  )
})

test('takes files and folders, and prints JSON', () => {
  const file = join(import.meta.dirname, '../../src/simulation/scenarios/spend-cap.json')
  const lines = run('--scenarios', file, '--policies', 'headroom,oracle', '--json').trim().split('\n')
  expect(lines.map((line) => JSON.parse(line))).toMatchObject([
    { case: 'spend-cap', policy: 'headroom', runs: [{}, {}], clairvoyant: [{}, {}] },
    { case: 'spend-cap', policy: 'oracle' },
  ])
})

test.each([
  ['shorter waits at our tokens', 4_000, 0.98, 0, ['headroom']],
  ['shorter waits that cost tokens', 4_000, 0.9, 0, []],
  ['shorter waits with one unserved', 4_000, 1, 1, []],
  ['waits that are as long', 4_950, 1, 0, []],
])('ours loses to %s', (_name, meanPrimaryWaitMs, auxiliaryTokensServed, primariesUnserved, expected) => {
  const ours = [{ meanPrimaryWaitMs: 5_000, auxiliaryTokensServed: 1, primariesUnserved: 0 }]
  const theirs = [{ meanPrimaryWaitMs, auxiliaryTokensServed, primariesUnserved }]
  const results = new Map([
    ['rightofway-adaptive', ours],
    ['headroom', theirs],
    ['oracle', theirs],
  ]) as unknown as Parameters<typeof losesTo>[0]
  expect(losesTo(results)).toEqual(expected)
})
