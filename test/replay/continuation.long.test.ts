/** As the short law, ten thousand events behind the cut. */
import { expect, it } from 'vitest'
import { advance, type ScopeContext } from '../../machines/index.ts'
import { decodeScope, encodeScope } from '../../machines/snapshot/codec.ts'
import { History } from './histories.ts'

it.each(Array.from({ length: 40 }, (_, seed) => seed))(
  'history %i goes on as it did',
  { timeout: 600_000 },
  (seed) => {
    const history = new History(50_000 + seed)
    const restored: ScopeContext[] = []
    for (let step = 0; step < 12_000; step += 1) {
      if (step % 250 === 0 && step <= 2_000)
        restored.push(decodeScope(JSON.parse(JSON.stringify(encodeScope(history.context)))))
      const event = history.next()
      const decided = JSON.stringify(history.tell(event))
      for (const [cut, context] of restored.entries()) {
        const next = advance(context, event)
        restored[cut] = next
        expect(JSON.stringify(next.decisions), `seed ${seed}, cut ${cut}, event ${step}`).toBe(decided)
      }
    }
    const end = JSON.stringify(encodeScope(history.context))
    for (const context of restored) expect(JSON.stringify(encodeScope(context))).toBe(end)
  },
)
