/** The reason that holds a call longest is the one that is told. */
import { describe, expect, it } from 'vitest'
import type { WaitReason } from '../../machines/scheduling/wait-reason.ts'
import { longestOf, type TimedHold } from '../../src/host/explain-hold.ts'
import { Bench } from './bench.ts'

const budget: TimedHold = { reason: 'budget', wakeAt: 5_000 }
const provider: TimedHold = { reason: 'provider-wait', wakeAt: 9_000 }
const pending: WaitReason = { reason: 'primary-pending', wakeAt: null }

describe('the longest hold', () => {
  it.each<[string, WaitReason, TimedHold[], WaitReason, TimedHold | null]>([
    ['is the only one', budget, [budget], budget, null],
    ['is the later of two, though the other was found first', budget, [budget, provider], provider, null],
    ['is the later of two in the other order', provider, [provider, budget], provider, null],
    ['is the first found where both end together', budget, [{ ...provider, wakeAt: 5_000 }], budget, null],
    ['is an event, alone', pending, [], pending, null],
    ['is an event, with the longest time beside it', pending, [budget, provider], pending, provider],
  ])('%s', (_, first, holds, reason, besides) => {
    expect(longestOf(first, holds)).toEqual({ reason, besides })
  })
})

it('that lasts hours is told first, in hours and with its end', async () => {
  const dayMs = 86_400_000
  const bench = await Bench.open({ primaryPendingTimeoutMs: dayMs, auxiliaryPendingTimeoutMs: dayMs })
  await bench.primary('p')
  await bench.auxiliary('a')
  const endsAt = new Date(bench.clock.now() + 3 * 3_600_000).toISOString().slice(0, 19).replace('T', ' ')
  const error = { type: 'usage_limit_reached', message: 'used up', resets_in_seconds: 3 * 3_600 }
  await bench.fail('p', Object.assign(new Error('429'), { status: 429, headers: {}, error: { error } }))
  const [conclusion] = (await bench.host.explain('p'))!.lines
  expect(conclusion).toContain('still waits after 0.0 s, behind 0 primaries')
  expect(conclusion).toContain('the provider asked the whole scope to wait (provider-wait')
  expect(conclusion).toContain('looked at again in 3 h at the latest')
  const [gate, ...rest] = (await bench.host.explain('a'))!.lines
  expect(gate).toContain('the provider asked the whole scope to wait')
  expect([gate, ...rest].join('\n')).toContain(endsAt.slice(0, 10))
  await bench.host.close()
})

it('is an event, told with the wait of the provider that outlasts it', async () => {
  const bench = await Bench.open({ primaryPendingTimeoutMs: 86_400_000 })
  await bench.primary('p')
  await bench.primary('second', { dependsOn: ['p'] })
  const error = { type: 'usage_limit_reached', message: 'used up', resets_in_seconds: 7_200 }
  await bench.fail('p', Object.assign(new Error('429'), { status: 429, headers: {}, error: { error } }))
  const [conclusion] = (await bench.host.explain('second'))!.lines
  expect(conclusion).toMatch(
    /calls that it depends on have not ended \(dependencies, in \S+\); and not before \S+ \S+ UTC: the provider asked the whole scope to wait \(provider-wait\)$/,
  )
  await bench.host.close()
})
