/** Parity with the Resource-Priority Edict, line by line: each is shown by a test that exists. */
import { describe, expect, it } from 'vitest'
import { claimPacing, engineQos, fanOut, leases, modelGate, priorityClasses, workerLanes } from './lines.ts'
import { isShown, type Shown } from './shown.ts'

const chapters: ReadonlyArray<readonly [string, ReadonlyArray<Shown>]> = [
  ['priority classes', priorityClasses],
  ['the gate over a model', modelGate],
  ['fan-out', fanOut],
  ['worker lanes', workerLanes],
  ['foreground leases', leases],
  ['claim pacing', claimPacing],
  ['engine quality of service', engineQos],
]

describe.each(chapters)('%s', (_, lines) => {
  it.each(lines.map((line) => [line.behaviour, line] as const))('%s', (_behaviour, line) => {
    expect(isShown(line), `test/${line.file} has no test "${line.test}"`).toBe(true)
  })

  it('names each behaviour once', () => {
    const named = lines.map(({ behaviour }) => behaviour)
    expect(new Set(named).size).toBe(named.length)
  })
})

describe('a line', () => {
  it.each([
    ['whose test is gone', 'no such test at all'],
    ['that names a part of a title', 'names each behaviour'],
    ['that names what is no title', 'engine quality of service'],
  ])('%s is noticed', (_, test) => {
    expect(isShown({ behaviour: '', file: 'edict/parity.test.ts', test })).toBe(false)
  })

  it("that names a test's whole title is shown, on one line or on several", () => {
    const files = [
      ['edict/parity.test.ts', 'names each behaviour once'],
      ['edict/quiet-window.test.ts', '(%s) wakes who waits when it ends, to the millisecond'],
    ] as const
    for (const [file, test] of files) expect(isShown({ behaviour: '', file, test })).toBe(true)
  })
})
