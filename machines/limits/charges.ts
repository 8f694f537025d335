/** What one call takes from the budget: to be let in, at admission, and in the end. */
import type { Call, Usage } from '../model/call.ts'
import type { Charges } from '../model/charges.ts'
import type { Outcome } from '../model/event.ts'
import type { Cost } from './budget.ts'

export const nothing: Cost = { requests: 0, inputTokens: 0, outputTokens: 0 }
const requestOnly: Cost = { requests: 1, inputTokens: 0, outputTokens: 0 }

const combined = ({ combined }: Charges, inputTokens: number, outputTokens: number): Cost => {
  if (combined === 'apart') return { requests: 1, inputTokens, outputTokens }
  const counted = combined === 'sum' ? inputTokens + outputTokens : Math.max(inputTokens, outputTokens)
  return { requests: 1, inputTokens: counted, outputTokens }
}

/** Output that counts before there is any. */
const foreseenOutput = (charges: Charges, call: Call): number => {
  if (charges.output === 'none') return 0
  const estimated = call.outputTokens * charges.outputWeight
  if (charges.output === 'estimate') return estimated
  return call.maxOutputTokens ?? charges.defaultMaxOutputTokens ?? estimated
}

/** What must be left in the budget for the call to go. */
export const neededFor = (charges: Charges, call: Call): Cost => {
  const cost = combined(charges, call.inputTokens, foreseenOutput(charges, call))
  // Where output counts when it exists, the door still asks that the output limit is not used up.
  return charges.output === 'none' && charges.combined === 'apart' ? { ...cost, outputTokens: 1 } : cost
}

/** What the provider takes as it lets the call in. */
export const takenAtAdmission = (charges: Charges, call: Call): Cost =>
  charges.at === 'completion'
    ? requestOnly
    : combined(charges, call.inputTokens, foreseenOutput(charges, call))

/** Input tokens of the usage that count against limits; null when it says none. */
export const countedInput = ({ cacheReads }: Charges, usage: Usage): number | null => {
  const { inputTokens, allInputTokens, cacheReadTokens } = usage
  if (cacheReads === 'asReported' || allInputTokens === undefined) return inputTokens
  return cacheReads === 'counted' ? allInputTokens : Math.max(0, allInputTokens - (cacheReadTokens ?? 0))
}

/** A dispatch as it ended. */
export interface Ended {
  readonly outcome: Outcome
  /** How far it came. */
  readonly stage: 'admitted' | 'dispatched' | 'accepted'
  readonly usage?: Usage | undefined
  /** What was taken for it at admission. */
  readonly taken: Cost
}

/** The provider's charge for a call that has ended. */
export const takenInTheEnd = (charges: Charges, call: Call, ended: Ended): Cost => {
  const { outcome, stage, usage, taken } = ended
  if (stage !== 'accepted') {
    if (outcome === 'throttled') return nothing
    if (outcome === 'cancelled' && stage === 'admitted') return nothing
    if (outcome === 'failed' || outcome === 'cancelled') {
      if (!charges.failures) return nothing
      return charges.at === 'completion' ? combined(charges, call.inputTokens, 0) : taken
    }
  }
  if (!charges.corrected && charges.at === 'admission') return taken
  const said = usage === undefined ? null : countedInput(charges, usage)
  return combined(charges, said ?? call.inputTokens, outputInTheEnd(charges, call, usage))
}

const outputInTheEnd = (charges: Charges, call: Call, usage: Usage | undefined): number => {
  if (usage !== undefined && usage.outputTokens !== null) return usage.outputTokens * charges.outputWeight
  // Of an answer that does not say its length, what is known best.
  return charges.output === 'maxTokens'
    ? foreseenOutput(charges, call)
    : call.outputTokens * charges.outputWeight
}
