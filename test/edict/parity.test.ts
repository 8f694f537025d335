/** Parity with the Resource-Priority Edict, line by line: each is shown by a test that exists. */
import { describe, expect, it } from 'vitest'
import { claimPacing, fanOut, leases, modelGate, priorityClasses, workerLanes } from './lines.ts'
import { isShown, type Shown } from './shown.ts'

const chapters: ReadonlyArray<readonly [string, ReadonlyArray<Shown>]> = [
  ['priority classes', priorityClasses],
  ['the gate over a model', modelGate],
  ['fan-out', fanOut],
  ['worker lanes', workerLanes],
  ['foreground leases', leases],
  ['claim pacing', claimPacing],
]

describe.each(chapters)('%s', (_, lines) => {
  it.each(lines.map((line) => [line.behaviour, line] as const))('%s', (_behaviour, line) => {
    expect(isShown(line), `test/${line.file} has no test "${line.test}"`).toBe(true)
  })
})

it('a line whose test is gone is noticed', () => {
  expect(isShown({ behaviour: '', file: 'edict/parity.test.ts', test: `no such ${'test'}` })).toBe(false)
})
