/** A scope that goes on from its snapshot decides as the one that never stopped, byte for byte. */
import { describe, expect, it } from 'vitest'
import { advance, type ScopeContext } from '../../machines/index.ts'
import { decodeScope, encodeScope } from '../../machines/snapshot/codec.ts'
import { History } from './histories.ts'

const textOf = (context: ScopeContext): string => JSON.stringify(encodeScope(context))

/** Tells a history, with a scope that was restored at every event and goes on for `reach` more. */
const continues = (seed: number, events: number, reach: number): void => {
  const history = new History(seed)
  let restored: Array<{ readonly from: number; context: ScopeContext }> = []
  for (let step = 0; step < events; step += 1) {
    const snapshot = textOf(history.context)
    restored.push({ from: step, context: decodeScope(JSON.parse(snapshot)) })
    restored = restored.filter(({ from }) => from + reach > step)
    const event = history.next()
    const decided = JSON.stringify(history.tell(event))
    for (const one of restored) {
      one.context = advance(one.context, event)
      const again = JSON.stringify(one.context.decisions)
      if (again !== decided)
        expect(again, `seed ${seed}, restored at ${one.from}, ${event.type} ${step}`).toBe(decided)
    }
    const oldest = restored[0]!
    if (oldest.from + reach === step + 1) expect(textOf(oldest.context)).toBe(textOf(history.context))
  }
}

describe('from every snapshot', () => {
  it.each(Array.from({ length: 60 }, (_, seed) => seed))('history %i goes on as it did', (seed) => {
    continues(seed, 150, 40)
  })

  it('two primaries of different classes that one event granted time out in the order of their grants', () => {
    for (let seed = 1_000; seed < 1_040; seed += 1) continues(seed, 60, 60)
  })
})
