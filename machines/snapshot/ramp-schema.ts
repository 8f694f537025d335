/** The shape of a ramp in a snapshot, and the bounds of its size. */
import { Schema } from 'effect'
import { mostSlots } from '../collections/usage-window.ts'
import { growthKinds, keptMinutes } from '../limits/ceiling.ts'
import { emptyRamp, planKinds, type Ramp } from '../limits/ramp.ts'
import { decodeOrThrow, finite, integer, maxSafe } from '../model/invalid.ts'

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

/**
 * Tells a ramp of an older version, which kept no bounds by minute. Only its record of used tokens still
 * means the same.
 */
const ofOlderVersion = (input: unknown): input is { readonly slots: unknown } =>
  typeof input === 'object' && input !== null && 'slots' in input && !('minutes' in input)

/**
 * Reads a ramp. An older version's ramp starts to learn anew and keeps the tokens in use. Throws
 * `InvalidInput`.
 */
export const decodeRamp = (input: unknown): Ramp =>
  decodeOrThrow(
    RampSchema,
    'snapshot.ramp',
    ofOlderVersion(input) ? { ...emptyRamp, slots: input.slots } : input,
  )
