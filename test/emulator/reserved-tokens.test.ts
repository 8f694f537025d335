/** A limit that charges `max_tokens` at admission, gives back unused tokens, and charges for failures. */
import { expect, test } from 'vitest'
import { makeProvider } from '../../src/emulator/provider.ts'
import { decodeRules } from '../../src/emulator/rules/spec.ts'

const call = { callId: 'a', inputTokens: 1_000, outputTokens: 50 }
const providerOf = (over: object) =>
  makeProvider({
    rules: decodeRules([{ rule: 'reserved-tokens', tokensPerMinute: 30_000, ...over }]),
    latency: { firstTokenMs: 0, perOutputTokenMs: 0 },
    seed: 1,
  })

test.each([
  ['input and the stated maximum, then what was used', {}, 4_000, 25_000, 28_950, 30_000],
  ['the larger of the two, for good', { counts: 'larger', settles: 'none' }, 4_000, 26_000, 26_000, 30_000],
  ['its own default where none is stated', { defaultMaxTokens: 16_384 }, undefined, 12_616, 28_950, 30_000],
  ['output five times once it is written', { outputWeight: 5 }, 4_000, 25_000, 28_750, 30_000],
  ['as much of a failure, where failures charge', { failuresCharge: true }, 4_000, 25_000, 28_950, 25_000],
  ['nothing for output that nobody named', {}, undefined, 29_000, 28_950, 30_000],
] as const)('takes %s', (_, over, maxOutputTokens, afterStart, afterEnd, afterFailure) => {
  for (const failed of [false, true]) {
    const provider = providerOf(over)
    const begun = provider.begin({
      ...call,
      atMs: 0,
      ...(maxOutputTokens === undefined ? {} : { maxOutputTokens }),
    })
    expect(provider.ceiling(0)).toBe(afterStart)
    if (!begun.accepted) throw new Error('refused')
    if (failed) provider.cancel({ dispatch: begun.dispatch, atMs: 0, failed })
    else provider.finish({ dispatch: begun.dispatch, atMs: 0 })
    expect(provider.ceiling(0)).toBe(failed ? afterFailure : afterEnd)
  }
})

test('refuses a call whose maximum it does not hold, and says when it will', () => {
  const provider = providerOf({})
  provider.begin({ ...call, atMs: 0, maxOutputTokens: 24_000 })
  const refused = provider.begin({ ...call, atMs: 0, maxOutputTokens: 9_000 })
  expect(refused).toMatchObject({
    refusal: {
      rule: 'reserved-tokens',
      requested: 10_000,
      used: 25_000,
      retryAfterMs: 10_000,
      permanent: false,
    },
  })
  const never = provider.begin({ ...call, atMs: 0, maxOutputTokens: 30_000 })
  expect(never).toMatchObject({ refusal: { permanent: true, retryAfterMs: null } })
})
