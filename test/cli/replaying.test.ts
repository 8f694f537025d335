/** Replays of journals with very many scopes. */
import { expect, it } from 'vitest'
import { newestMoment } from '../../src/cli/replaying.ts'

it('finds the newest moment of more scopes than a function takes arguments', () => {
  const scopes = Array.from({ length: 300_000 }, (_, at) => ({ context: { at: (at * 7_919) % 300_000 } }))
  expect(() => Math.max(...scopes.map(({ context }) => context.at))).toThrow(RangeError)
  expect(newestMoment(scopes)).toBe(299_999)
})
