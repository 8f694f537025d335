/** A journal that an earlier version wrote around a spent quota, when the call that asks first had no reason of its own. */
import { expect, it } from 'vitest'
import { kernelOf } from '../../src/host/internal.ts'
import { openHost } from '../../src/index.ts'
import { openMemoryJournal } from '../../src/journal/memory.ts'
import { Bench, settle } from '../host/bench.ts'

it('opens, and goes on with the probe that it had', async () => {
  const memory = openMemoryJournal()
  const bench = await Bench.open({ capacity: 4, reserve: 0 }, memory)
  const runner = kernelOf(bench.host).runners.get(bench.scope.name)!
  await bench.auxiliary('met')
  runner.tell({
    type: 'call.settled',
    callId: 'met',
    outcome: 'throttled',
    evidence: {
      kind: 'quota-exhausted',
      scope: 'credential',
      retryAfterMs: null,
      retryable: false,
      facts: {},
    },
  })
  await bench.auxiliary('asks')
  await bench.auxiliary('waits')
  await bench.pass(300_000)
  await settle()
  const { entries } = memory.survivors()
  expect(entries.filter(({ record }) => record.includes('"reason":"probe"'))).toHaveLength(1)
  const earlier = entries.map((entry) => ({
    ...entry,
    record: entry.record.replace('"reason":"probe"', '"reason":"open"'),
  }))
  const journal = openMemoryJournal({ history: { entries: earlier, checkpoints: [] } })
  await using host = await openHost({ journal, clock: bench.clock })
  expect(kernelOf(host).runners.get(bench.scope.name)?.context.counts.auxiliaryWaiting).toBe(1)
  // Another difference is followed as it was recorded.
  const wrong = entries.map((entry) => ({
    ...entry,
    record: entry.record.replace('"reason":"probe"', '"reason":"fairness"'),
  }))
  await using other = await openHost({
    journal: openMemoryJournal({ history: { entries: wrong, checkpoints: [] } }),
    clock: bench.clock,
  })
  expect(kernelOf(other).failures.size).toBe(0)
  expect(kernelOf(other).runners.get(bench.scope.name)?.context.counts.auxiliaryWaiting).toBe(1)
})
