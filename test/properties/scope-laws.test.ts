import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { createActor } from 'xstate'
import { providerScope, scopeChart } from '../../machines/index.ts'
import { said } from '../machines/statechart/graph-walk.ts'
import { runs } from './runs.ts'
import { anyMove, anyPolicy, Drive } from './scope-drive.ts'

const story = fc.record({ policy: anyPolicy, moves: fc.array(anyMove, { maxLength: 60 }) })

const replay = (drive: Drive): string => {
  const actor = createActor(providerScope, { input: { scope: 'test' } }).start()
  for (const event of drive.events) actor.send(event)
  return JSON.stringify(actor.getPersistedSnapshot())
}

describe('a scope, whatever happens to it', () => {
  it('keeps I1 to I4, ends every call once, and never waits for ever', () => {
    fc.assert(
      fc.property(story, ({ policy, moves }) => {
        const drive = new Drive(policy)
        for (const move of moves) drive.move(move)
        drive.drain()
        drive.witness.finish()
      }),
      { numRuns: runs(2_000) },
    )
  })

  it('I7: its snapshot equals a replay of its events, byte for byte, and survives the codec at any moment', () => {
    fc.assert(
      fc.property(story, fc.nat({ max: 60 }), ({ policy, moves }, cut) => {
        const drive = new Drive(policy)
        for (const move of moves.slice(0, cut)) drive.move(move)
        const text = JSON.stringify(drive.actor.getPersistedSnapshot())
        const restored = createActor(providerScope, {
          input: { scope: 'test' },
          snapshot: JSON.parse(text),
        }).start()
        expect(JSON.stringify(restored.getPersistedSnapshot())).toBe(text)
        const known = drive.events.length
        for (const move of moves.slice(cut)) drive.move(move)
        for (const event of drive.events.slice(known)) restored.send(event)
        const end = JSON.stringify(drive.actor.getPersistedSnapshot())
        expect(restored.getPersistedSnapshot()).toEqual(JSON.parse(end))
        expect(JSON.stringify(restored.getPersistedSnapshot())).toBe(end)
        expect(replay(drive)).toBe(end)
      }),
      { numRuns: runs(1_000) },
    )
  })

  it('walks its chart as XState\u2019s own interpreter does', () => {
    fc.assert(
      fc.property(story, ({ policy, moves }) => {
        const drive = new Drive(policy)
        for (const move of moves) drive.move(move)
        const walking = createActor(providerScope, { input: { scope: 'test' } })
        const stepping = createActor(scopeChart, { input: { scope: 'test' } })
        const emitted: [unknown[], unknown[]] = [[], []]
        walking.on('decided', (event) => emitted[0].push(event))
        stepping.on('decided', (event) => emitted[1].push(event))
        walking.start()
        stepping.start()
        for (const event of drive.events) {
          walking.send(event)
          stepping.send(event)
          expect(said(walking.getSnapshot())).toBe(said(stepping.getSnapshot()))
        }
        expect(emitted[0]).toEqual(emitted[1])
      }),
      { numRuns: runs(500) },
    )
  })
})
