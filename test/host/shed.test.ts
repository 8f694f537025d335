/** A scope that sheds, through the host: a typed error, a journal that knows why, and no race. */
import { describe, expect, it } from 'vitest'
import { Shed } from '../../src/index.ts'
import { openMemoryJournal } from '../../src/journal/memory.ts'
import { Bench, settle } from './bench.ts'

const server = { capacity: 8, reserve: 0, inFlight: 'tolerate', hold: 'whileWaiting', qos: {} } as const

describe('a call that is shed', () => {
  it('rejects with a typed error that says when to come back', async () => {
    const bench = await Bench.open(server)
    for (const id of ['a1', 'a2']) await bench.auxiliary(id, { principal: 'a' })
    await bench.auxiliary('a3', { principal: 'a' })
    const error = bench.outcomes.get('a3')
    expect(error).toBeInstanceOf(Shed)
    expect(error).toMatchObject({
      _tag: 'Shed',
      callId: 'a3',
      reason: 'principal-quota',
      retryAfterMs: 250,
      message: 'BUSY: the principal has its quota of calls in use, retry with backoff',
    })
    expect(bench.running).toEqual(['a1', 'a2'])
    await bench.host.close()
  })

  it('may be asked for again under the same id, and explain tells its last turn', async () => {
    const bench = await Bench.open(server)
    for (const id of ['a1', 'a2', 'a3']) await bench.auxiliary(id, { principal: 'a' })
    const refused = await bench.host.explain('a3')
    expect(refused?.standing).toBe('ended')
    expect(refused?.lines.join('\n')).toContain('rejected: its principal had its quota of live calls')
    await bench.finish('a1')
    await bench.auxiliary('a3', { principal: 'a' })
    expect(bench.running).toEqual(['a2', 'a3'])
    const admitted = await bench.host.explain('a3')
    expect(admitted?.standing).toBe('in flight')
    expect(admitted?.lines.join('\n')).not.toContain('rejected')
    await bench.host.close()
  })

  it('is one of a burst: fifty that ask at once are checked and counted one by one', async () => {
    const bench = await Bench.open(server)
    const asked = Array.from({ length: 50 }, (_, index) =>
      bench.scope.admit({ priorityClass: 'background_ingestion', principal: `p${index}` }),
    )
    const answers = await Promise.allSettled(asked)
    expect(answers.filter(({ status }) => status === 'fulfilled')).toHaveLength(5)
    const refused = answers.flatMap((answer) => (answer.status === 'rejected' ? [answer.reason] : []))
    expect(refused.every((error) => error instanceof Shed && error.reason === 'class-ceiling')).toBe(true)
    for (const answer of answers)
      if (answer.status === 'fulfilled') answer.value.settle({ outcome: 'completed' })
    await settle()
    await bench.host.close()
  })

  it('counts after a crash the calls that are still live', async () => {
    const journal = openMemoryJournal()
    const first = await Bench.open(server, journal)
    for (const id of ['a1', 'a2']) await first.auxiliary(id, { principal: 'a' })
    const left = openMemoryJournal({ history: journal.survivors() })
    const second = await Bench.open(server, left, 1_060_000)
    // Calls that ran when the host died have an unknown outcome and are no longer live.
    for (const id of ['a3', 'a4', 'a5']) await second.auxiliary(id, { principal: 'a' })
    expect(second.running).toEqual(['a3', 'a4'])
    expect(second.outcomes.get('a5')).toBeInstanceOf(Shed)
    await second.host.close()
  })
})
