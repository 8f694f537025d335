/** The shape of a ramp in a snapshot, and the bounds of its size. */
import { Schema } from 'effect'
import { growthKinds, keptMinutes } from './ceiling.ts'
import { decodeOrThrow, finite, integer, maxSafe } from './invalid.ts'
import { emptyRamp, planKinds, type Ramp } from './ramp.ts'
import { mostSlots } from './slots.ts'

const tokens = integer(0, maxSafe)
const timeMs = integer(0, maxSafe)
const atMost = (length: number) => Schema.isMaxLength(length)

const Slots = Schema.Array(Schema.Struct({ second: integer(0, maxSafe), tokens })).check(atMost(mostSlots))

const RampSchema = Schema.Struct({
  slots: Slots,
  accepted: Slots,
  minutes: Schema.Array(
    Schema.Struct({
      minute: integer(0, maxSafe),
      acceptedTokens: tokens,
      acceptedBeforeTokens: tokens,
      refusedTokens: Schema.NullOr(tokens),
      refusedBeforeTokens: tokens,
      statedTokens: Schema.NullOr(tokens),
    }),
  ).check(atMost(keptMinutes)),
  closedMinute: integer(-2, maxSafe),
  growth: Schema.Struct({
    kind: Schema.Literals(growthKinds),
    factor: Schema.NullOr(finite(0, maxSafe)),
    tokensPerMinute: Schema.NullOr(finite(0, maxSafe)),
  }),
  refusal: Schema.NullOr(
    Schema.Struct({
      atMs: timeMs,
      tokens,
      trailingTokens: tokens,
      statedLimit: Schema.NullOr(tokens),
      statedNextLimit: Schema.NullOr(tokens),
    }),
  ),
  refusedUse: Schema.NullOr(Schema.Struct({ tokens, atMs: timeMs })),
  plan: Schema.NullOr(
    Schema.Struct({
      kind: Schema.Literals(planKinds),
      tokens,
      tryAtMs: timeMs,
      refusals: tokens,
      targetTokens: tokens,
      quietUntilMs: timeMs,
    }),
  ),
  highestAccepted: tokens,
  epochMs: timeMs,
})

/** A ramp as it was written: what an older version did not write yet is as it begins, what it wrote besides is left out. Throws `InvalidInput`. */
export const decodeRamp = (input: unknown): Ramp => {
  const written = typeof input === 'object' && input !== null ? input : null
  const known = written && Object.fromEntries(Object.entries(written).filter(([name]) => name in emptyRamp))
  return decodeOrThrow(RampSchema, 'snapshot.ramp', known === null ? input : { ...emptyRamp, ...known })
}
