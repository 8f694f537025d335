/**
 * Fairness between principals in the auxiliary lane: each principal's tokens against its max-min fair share.
 */
import type { Run } from './run.ts'
import type { Scenario, Stream } from './scenario.ts'
import { meanTokens } from './size.ts'

/**
 * Max-min fair shares of `total` between demands. No share exceeds its demand, and no share can grow without
 * taking from a smaller one. Shares sum to min(total, sum of demands).
 */
export const maxMinShares = (total: number, demands: ReadonlyArray<number>): ReadonlyArray<number> => {
  const shares = demands.map(() => 0)
  const order = demands.map((_, index) => index).sort((one, other) => demands[one]! - demands[other]!)
  let left = total
  for (const [served, index] of order.entries()) {
    const share = Math.min(demands[index]!, left / (demands.length - served))
    shares[index] = share
    left -= share
  }
  return shares
}

/** Jain's index of numbers >= 0: (sum x)^2 / (n sum x^2), in [1/n, 1]; 1 for none and for all zero. */
export const jainIndex = (values: ReadonlyArray<number>): number => {
  const sum = values.reduce((total, value) => total + value, 0)
  const squares = values.reduce((total, value) => total + value ** 2, 0)
  return squares === 0 ? 1 : sum ** 2 / (values.length * squares)
}

/** Tokens that a closed loop asks for if it never waits. */
const unhinderedTokens = ({ durationMs, provider }: Scenario, stream: Stream): number => {
  if (stream.arrival.kind !== 'closed-loop') return 0
  const { firstTokenMs, perOutputTokenMs } = provider.latency
  const callMs = Math.max(1, firstTokenMs + perOutputTokenMs * meanTokens(stream.outputTokens ?? 0))
  return stream.arrival.workers * (durationMs / callMs) * meanTokens(stream.inputTokens ?? 0)
}

/**
 * Jain's index over the principals of the auxiliary lane. Each counts by its tokens served, divided by its
 * max-min fair share of all the tokens served. A principal's demand is the tokens that it submitted. In a
 * closed loop it is the tokens that its workers would ask for if they never waited.
 */
export const jainOf = ({ scenario, records }: Run): number => {
  const demands = new Map<string, number>()
  const served = new Map<string, number>()
  const add = (to: Map<string, number>, principal: string, tokens: number): void => {
    to.set(principal, (to.get(principal) ?? 0) + tokens)
  }
  const closed = new Set<string>()
  for (const stream of scenario.traffic) {
    if (stream.lane !== 'auxiliary' || stream.arrival.kind !== 'closed-loop') continue
    closed.add(stream.principal)
    add(demands, stream.principal, unhinderedTokens(scenario, stream))
  }
  for (const { call, submittedAtMs, acceptedAtMs } of records) {
    if (call.lane !== 'auxiliary' || submittedAtMs >= scenario.durationMs) continue
    if (!closed.has(call.principal)) add(demands, call.principal, call.inputTokens)
    const counts = acceptedAtMs !== null && acceptedAtMs < scenario.durationMs
    add(served, call.principal, counts ? call.inputTokens : 0)
  }
  const principals = [...demands.keys()]
  const got = principals.map((principal) => served.get(principal) ?? 0)
  const total = got.reduce((sum, tokens) => sum + tokens, 0)
  const shares = maxMinShares(
    total,
    principals.map((principal) => demands.get(principal)!),
  )
  const fractions = got.map((tokens, index) => (shares[index] === 0 ? 1 : tokens / shares[index]!))
  return jainIndex(fractions)
}
