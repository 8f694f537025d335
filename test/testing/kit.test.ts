/** The testing kit: calls, scripts, recorded journals, snapshots, matchers. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { buildCall, laneMatchers, loadJournal, loadSnapshot, ManualClock, play } from 'rightofway/testing'
import 'rightofway/testing/vitest'
import { describe, expect, it, onTestFinished } from 'vitest'
import { encodeScope } from '../../machines/snapshot/codec.ts'
import { InvalidInput, openHost } from '../../src/index.ts'
import { exportJournal } from '../../src/journal/transfer.ts'

const merge = { id: 'merge', lane: 'auxiliary', inputTokens: 60_000 } as const
const turn = { id: 'turn', inputTokens: 180_000 } as const

describe('a call', () => {
  it('has the defaults that a host gives it', () => {
    expect(buildCall({ id: 'a' })).toMatchObject({
      lane: 'primary',
      priorityClass: 'orchestration',
      inputTokens: 0,
    })
    expect(buildCall(merge)).toMatchObject({ priorityClass: 'background_ingestion', principal: 'default' })
  })

  it('out of its range is refused by name', () => {
    expect(() => buildCall({ id: 'a', inputTokens: -1 })).toThrow(InvalidInput)
  })
})

describe('a script', () => {
  it('shows what a policy decides, and when', () => {
    const script = [
      { at: 0, submit: turn },
      { at: 10, submit: merge },
      { at: 20, accept: 'turn' },
      { at: 5_000, settle: 'turn', usage: { inputTokens: 181_000, outputTokens: 10 } },
      { at: 60_000, pass: true },
    ] as const
    const played = play({ preset: 'contract', capacity: 4 }, script)
    expect(played).toAdmit('turn')
    expect(played).toDefer('merge', 'primary-active')
    expect(played).toAdmitBefore('turn', 'merge')
    expect(played.grantedAt('turn')).toBe(0)
    expect(played.grantedAt('merge')).toBeGreaterThanOrEqual(5_000)
    expect(played.status.counters.completed).toBe(1)
    expect(play({ preset: 'contract', capacity: 4 }, script).decisions).toEqual(played.decisions)
    // Background goes on beside a primary that the provider has accepted.
    expect(play({ preset: 'adaptive', tokenReserve: 0 }, script).grantedAt('merge')).toBeLessThan(5_000)
  })

  it('lets fall due what falls due between its steps', () => {
    const played = play({ capacity: 1, reserve: 0, auxiliaryPendingTimeoutMs: 1_000 }, [
      { at: 0, submit: turn },
      { at: 1, submit: merge },
      { at: 10_000, pass: true },
    ])
    expect(played).toRefuse('merge', 'pending-timeout')
    expect(played).not.toAdmit('merge')
  })

  it('tells of preemption, and takes any event of the core', () => {
    const played = play({ capacity: 1, reserve: 0, inFlight: 'cancel' }, [
      { at: 0, submit: merge },
      { at: 1_000, submit: turn },
      { at: 1_001, event: { type: 'call.settled', callId: 'merge', outcome: 'cancelled', owner: 'sends' } },
      { at: 70_000, pass: true },
    ])
    expect(played).toPreempt('merge')
    expect(played.grantedAt('turn')).not.toBeNull()
  })

  it('does not go back in time', () => {
    expect(() =>
      play({}, [
        { at: 5, pass: true },
        { at: 4, pass: true },
      ]),
    ).toThrow('step.at must be at least 5, got 4')
  })
})

describe('a recorded scope', () => {
  const recorded = async () => {
    const folder = mkdtempSync(join(tmpdir(), 'rightofway-'))
    onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
    const journal = join(folder, 'lanes.db')
    const clock = new ManualClock(1_700_000_000_000)
    const host = await openHost({ journal, clock })
    const scope = host.scope('anthropic/k/opus', { capacity: 1, reserve: 0 })
    const permit = await scope.admit(turn)
    scope.admit(merge).catch(() => {})
    clock.advance(1_000)
    const snapshot = JSON.stringify(
      encodeScope((await import('../../src/host/internal.ts')).runnerOf(scope).context),
    )
    permit.leave()
    await host.close()
    const lines = join(folder, 'export.ndjson')
    let text = ''
    for await (const line of exportJournal(journal)) text += line.endsWith('\n') ? line : `${line}\n`
    writeFileSync(lines, text)
    return { journal, lines, snapshot }
  }

  it('comes from a journal, its export or a snapshot, and goes on under any policy', async () => {
    const { journal, lines, snapshot } = await recorded()
    const [file, exported] = [await loadJournal(journal), await loadJournal(lines)]
    expect(exported.decisions).toEqual(file.decisions)
    expect(exported.differences).toEqual([])
    expect(exported.decisions.map(({ callId, verdict }) => `${callId}: ${verdict}`)).toEqual(
      expect.arrayContaining(['turn: admit', 'merge: defer']),
    )
    for (const from of [
      file.scope('anthropic/k/opus'),
      loadSnapshot(snapshot),
      loadSnapshot(JSON.parse(snapshot)),
    ]) {
      const script = [
        { at: 1_000, settle: 'turn' },
        { at: 1_000, event: { type: 'call.submitted', call: buildCall(merge), dispatchAtOnce: true } },
        { at: 90_000, pass: true },
      ] as const
      expect(play(null, script, { from })).toAdmit('merge')
      expect(play({ capacity: 1, reserve: 0, auxiliaryPendingTimeoutMs: 500 }, script, { from })).not.toAdmit(
        'merge',
      )
    }
  })

  it('that is not there is said so', async () => {
    const file = await loadJournal((await recorded()).journal)
    expect(() => file.scope('anthropc')).toThrow('knows no scope anthropc; there are anthropic/k/opus')
    await expect(loadJournal('no-such.db')).rejects.toThrow('does not exist')
    expect(() => loadSnapshot('{"scope":"a"}')).toThrow('snapshot')
  })
})

it('a matcher that fails shows what was decided', () => {
  const played = play({}, [{ at: 0, submit: turn }])
  expect(laneMatchers.toDefer(played, 'turn').message()).toMatch(
    /^expected turn to be deferred; got turn: admit \(/,
  )
  expect(laneMatchers.toAdmit(played, 'none').message()).toBe('expected none to be admitted; got no decision')
  expect(() => expect(played).toRefuse('turn')).toThrow('expected turn to be refused')
})
