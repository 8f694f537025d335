/**
 * How known providers charge a call against their limits, as they say it themselves or as their users have
 * measured it. They are data: a scope takes one as its policy's `charges`.
 */
import { type Charges, defaultCharges, InvalidInput } from '../../machines/index.ts'

/** Prompt and `max_tokens` are estimated once, as the request comes, and that number stays counted. */
const estimatedOnce = {
  ...defaultCharges,
  output: 'maxTokens',
  failures: true,
  cacheReads: 'counted',
  corrected: false,
} as const satisfies Charges

/** Input plus `max_tokens` is taken as the request comes; in the end what was used counts. */
const reservedThenUsed = {
  ...defaultCharges,
  output: 'maxTokens',
  combined: 'sum',
  cacheReads: 'free',
} as const satisfies Charges

export const knownCharges = {
  /** Input and output have limits of their own; output counts as it is written, `max_tokens` costs nothing, cache reads are free. */
  anthropic: { ...defaultCharges, output: 'none', cacheReads: 'free' },
  /** The larger of `max_tokens` and the estimated prompt; requests that fail count too. */
  openai: { ...estimatedOnce, combined: 'larger' },
  /** The estimate of a request adds its prompt and its `max_tokens`. */
  azure: { ...estimatedOnce, combined: 'sum' },
  bedrock: reservedThenUsed,
  /** Claude on Bedrock: a token of output counts as five once it is written. */
  'bedrock-claude': { ...reservedThenUsed, outputWeight: 5 },
  /** Input tokens alone have a limit; a request that is refused for its content has spent them. */
  gemini: { ...defaultCharges, output: 'none', failures: true, cacheReads: 'counted' },
  /** `max_completion_tokens` is taken as the request comes, 16,384 where it is left out, and not given back. */
  cerebras: { ...estimatedOnce, combined: 'sum', failures: false, defaultMaxOutputTokens: 16_384 },
} as const satisfies Readonly<Record<string, Charges>>

export type KnownCharges = keyof typeof knownCharges
export const knownChargesNames = Object.keys(knownCharges) as ReadonlyArray<KnownCharges>

/** The charges of a known provider: `host.scope(name, { charges: chargesOf('openai') })`. Throws `InvalidInput`. */
export const chargesOf = (name: KnownCharges): Charges => {
  if (Object.hasOwn(knownCharges, name)) return knownCharges[name]
  throw new InvalidInput([
    { field: 'charges', expected: `one of ${knownChargesNames.join(', ')}`, got: JSON.stringify(name) },
  ])
}
