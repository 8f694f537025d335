/** The provider as a scope believes it to be, as rules of the emulator: by the best guess, and at both ends of what is believed. */
import { type BelievedLimit, believedLimits } from '../../../machines/limits/belief/projection.ts'
import type { RuleSpec } from '../../emulator/index.ts'
import type { Recording } from './recording.ts'

export interface BelievedProvider {
  readonly rules: ReadonlyArray<RuleSpec>
  /** How the rules were chosen: 1 by the best guess, else a bound. */
  readonly guess: 'low' | 'middle' | 'high'
}

const mostTokens = 1_000_000_000
/** Where nothing bounds a limit from above, what is believed of it may be wrong by this factor. */
const unboundedFactor = 1.5

const tokensOf = (
  { tokensPerMinute: { low, high } }: BelievedLimit,
  guess: BelievedProvider['guess'],
): number => {
  const top = high ?? low * unboundedFactor
  const value =
    guess === 'low' ? low : guess === 'high' ? top : Math.sqrt(Math.max(1, low) * Math.max(1, top))
  return Math.min(mostTokens, Math.max(1, Math.round(value)))
}

const ruleOf = (
  limit: BelievedLimit,
  guess: BelievedProvider['guess'],
  { states, context }: Recording,
): RuleSpec => {
  const tokens = tokensOf(limit, guess)
  if (limit.family !== 'bucket') {
    const form = limit.family === 'clock' ? 'fixed' : 'sliding'
    return { rule: 'token-window', form, inputTokensPerWindow: tokens, states }
  }
  // A bucket holds at least the largest call that it ever took.
  const largest = Math.max(1, context.demand.largestTokens)
  const burst = Math.max(limit.burstTokens ?? tokens, largest)
  return {
    rule: 'token-bucket',
    inputTokensPerMinute: tokens,
    burstInputTokens: Math.min(mostTokens, burst),
    states,
  }
}

/** What is believed of input tokens at the end of the recording. */
export const limitsOf = ({ context }: Recording): ReadonlyArray<BelievedLimit> =>
  believedLimits(context.belief, context.at)

/** The rules that follow; a provider that refused nothing limits nothing. */
export const providersOf = (recording: Recording): ReadonlyArray<BelievedProvider> => {
  const limits = limitsOf(recording)
  return (['middle', 'low', 'high'] as const).map((guess) => ({
    guess,
    rules:
      limits.length === 0
        ? [{ rule: 'token-bucket', inputTokensPerMinute: mostTokens }]
        : limits.map((limit) => ruleOf(limit, guess, recording)),
  }))
}

/** Least share of the weight that the leading hypotheses have: how sure the kind of limit is, in (0, 1]. */
export const familyConfidence = (recording: Recording): number =>
  limitsOf(recording).reduce((least, { confidence }) => Math.min(least, confidence), 1)
