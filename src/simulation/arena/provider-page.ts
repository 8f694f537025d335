/** The limits that an operator can read on a provider's page, without any answer from the provider. */
import type { Charges } from '../../../machines/index.ts'
import type { RuleSpec } from '../../emulator/index.ts'
import type { Scenario } from './scenario.ts'

/** Limits per minute; null when the page names none. The page states no bursts, ramps or windows. */
export interface ProviderPage {
  readonly inputTokensPerMinute: number | null
  readonly outputTokensPerMinute: number | null
  readonly requestsPerMinute: number | null
  /** How calls are charged; null where it is by their input alone, as it is used. */
  readonly charges: Partial<Charges> | null
}

const chargesOf = (rules: ReadonlyArray<RuleSpec>): Partial<Charges> | null => {
  const reserved = rules.find((spec) => spec.rule === 'reserved-tokens')
  if (reserved === undefined) return null
  return {
    output: 'maxTokens',
    defaultMaxOutputTokens: reserved.defaultMaxTokens ?? 0,
    outputWeight: reserved.outputWeight ?? 1,
    combined: reserved.counts ?? 'sum',
    failures: reserved.failuresCharge ?? false,
    corrected: (reserved.settles ?? 'usage') === 'usage',
  }
}

/**
 * The smallest limit that the rules name, per dimension: for a ramp its tier, for changes the first limit.
 */
export const pageOf = ({ provider }: Scenario): ProviderPage => {
  const input: number[] = []
  const output: number[] = []
  const requests: number[] = []
  for (const rule of provider.rules) {
    if ('inputTokensPerMinute' in rule) input.push(rule.inputTokensPerMinute)
    if (rule.rule === 'changing-bucket') input.push(rule.changes[0]!.inputTokensPerMinute)
    if (rule.rule === 'token-window') {
      input.push(Math.floor((rule.inputTokensPerWindow * 60_000) / (rule.windowMs ?? 60_000)))
    }
    if ('tokensPerMinute' in rule) input.push(rule.tokensPerMinute)
    if ('tierTokensPerMinute' in rule) input.push(rule.tierTokensPerMinute)
    if ('outputTokensPerMinute' in rule) output.push(rule.outputTokensPerMinute)
    if ('requestsPerMinute' in rule) requests.push(rule.requestsPerMinute)
  }
  const least = (limits: ReadonlyArray<number>): number | null =>
    limits.length === 0 ? null : Math.min(...limits)
  return {
    inputTokensPerMinute: least(input),
    outputTokensPerMinute: least(output),
    requestsPerMinute: least(requests),
    charges: chargesOf(provider.rules),
  }
}
