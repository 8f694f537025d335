/** What a scope remembers of calls that have ended: an old version never sees what came later. */
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import {
  type Ending,
  type Endings,
  endingOf,
  endingsOf,
  noEndings,
  remember,
  rowsOf,
} from '../../../machines/collections/ended-log.ts'

const ids = ['a', 'b', 'c', 'd', 'e'] as const
const endings: ReadonlyArray<Ending> = ['completed', 'failed', 'withdrawn', 'unknown']

const known = (ended: Endings): ReadonlyArray<Ending | undefined> => ids.map((id) => endingOf({ ended }, id))

/** The same with plain arrays that are copied for every note. */
interface Plain {
  readonly newer: ReadonlyArray<readonly [string, Ending]>
  readonly older: ReadonlyArray<readonly [string, Ending]>
}

const rememberedPlainly = ({ newer, older }: Plain, id: string, ending: Ending, retention: number): Plain => {
  const rows = [...newer, [id, ending] as const]
  return rows.length > retention ? { newer: [], older: rows } : { newer: rows, older }
}

const knownPlainly = ({ newer, older }: Plain): ReadonlyArray<Ending | undefined> =>
  ids.map((id) => [...older, ...newer].findLast(([one]) => one === id)?.[1])

const all = ({ newer, older }: Endings) => ({ newer: [...rowsOf(newer)], older: [...rowsOf(older)] })

describe('what is remembered of ended calls', () => {
  it('is the newest ending of each, in two generations', () => {
    let ended = noEndings()
    for (const [id, ending] of [
      ['a', 'withdrawn'],
      ['b', 'failed'],
      ['a', 'completed'],
    ] as const)
      ended = remember(ended, id, ending, 0, { count: 2, ms: 0 })
    expect(known(ended)).toEqual(['completed', 'failed', undefined, undefined, undefined])
    expect(all(ended)).toEqual({
      newer: [],
      older: [
        ['a', 'withdrawn'],
        ['b', 'failed'],
        ['a', 'completed'],
      ],
    })
  })

  it('is forgotten with the generation that is dropped', () => {
    let ended = noEndings()
    for (const id of ['a', 'b', 'c', 'd']) ended = remember(ended, id, 'completed', 0, { count: 1, ms: 0 })
    expect(known(ended)).toEqual([undefined, undefined, 'completed', 'completed', undefined])
  })

  it('costs the same at any length: nothing is copied while only the newest version goes on', () => {
    let ended = noEndings()
    const { table } = ended.newer
    for (let n = 0; n < 1_000; n += 1)
      ended = remember(ended, `call-${n}`, 'completed', 0, { count: 2_000, ms: 0 })
    expect(ended.newer.table).toBe(table)
    expect(remember(noEndings(), 'a', 'failed', 0, { count: 2_000, ms: 0 }).newer.table).not.toBe(table)
  })

  it('is, from whichever version somebody goes on, what copied lists would hold', () => {
    const step = fc.record({
      from: fc.nat(),
      id: fc.constantFrom(...ids),
      ending: fc.constantFrom(...endings),
    })
    fc.assert(
      fc.property(fc.integer({ min: 0, max: 6 }), fc.array(step, { maxLength: 40 }), (retention, steps) => {
        const versions: Array<{ ended: Endings; plain: Plain }> = [
          { ended: noEndings(), plain: { newer: [], older: [] } },
        ]
        for (const { from, id, ending } of steps) {
          // Mostly the newest, as a scope does; now and then an old one.
          const { ended, plain } = versions[from % 4 === 0 ? from % versions.length : versions.length - 1]!
          versions.push({
            ended: remember(ended, id, ending, 0, { count: retention, ms: 0 }),
            plain: rememberedPlainly(plain, id, ending, retention),
          })
        }
        for (const { ended, plain } of versions) {
          expect(known(ended)).toEqual(knownPlainly(plain))
          expect(all(ended)).toEqual(plain)
          expect(all(endingsOf(rowsOf(ended.newer), rowsOf(ended.older)))).toEqual(plain)
        }
      }),
    )
  })
})

it('remembers for a time as well as for a number, whichever is longer', () => {
  let ended = noEndings(0)
  const retention = { count: 3, ms: 10_000 }
  for (let n = 0; n < 100; n += 1) ended = remember(ended, `call-${n}`, 'completed', n * 100, retention)
  expect(endingOf({ ended }, 'call-0')).toBe('completed')
  for (let n = 100; n < 205; n += 1) ended = remember(ended, `call-${n}`, 'completed', n * 100, retention)
  expect(endingOf({ ended }, 'call-0')).toBe(undefined)
  expect(endingOf({ ended }, 'call-110')).toBe('completed')
})
