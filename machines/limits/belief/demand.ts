/** What primaries ask for, and how often: what room is kept for the next of them. */

export interface Demand {
  /** Input tokens of the largest primary lately. */
  readonly largestTokens: number
  /** Mean input tokens of primaries lately. */
  readonly meanTokens: number
  /** Mean time between two primaries, milliseconds; 0 before there were two. */
  readonly everyMs: number
  /** When the last one came, epoch milliseconds; 0: never. */
  readonly lastAtMs: number
}

export const noDemand: Demand = { largestTokens: 0, meanTokens: 0, everyMs: 0, lastAtMs: 0 }

const smoothing = 0.2
/** The largest is forgotten within this time. */
const forgottenMs = 2 * 60 * 60_000
/** Primaries that come more seldom than this are not kept room for. */
const seldomMs = 30 * 60_000
/** So many times as long as usual without a primary, and none is expected any more. */
const patience = 12
const leastPatienceMs = 20 * 60_000

/** A primary came. */
export const came = (demand: Demand, tokens: number, atMs: number): Demand => {
  const gapMs = demand.lastAtMs === 0 ? 0 : atMs - demand.lastAtMs
  const everyMs =
    demand.everyMs === 0 ? gapMs : Math.round(demand.everyMs * (1 - smoothing) + gapMs * smoothing)
  const kept = Math.max(0, 1 - gapMs / forgottenMs)
  const largestTokens = Math.max(tokens, Math.floor(demand.largestTokens * kept))
  const meanTokens =
    demand.lastAtMs === 0 ? tokens : Math.round(demand.meanTokens * (1 - smoothing) + tokens * smoothing)
  return { largestTokens, meanTokens, everyMs, lastAtMs: atMs }
}

/** Whether another primary is expected. */
export const expects = ({ lastAtMs, everyMs }: Demand, atMs: number): boolean =>
  lastAtMs > 0 &&
  everyMs < seldomMs &&
  atMs - lastAtMs < Math.max(leastPatienceMs, Math.min(2 * seldomMs, patience * everyMs))

/** Input tokens that primaries use in a minute, about: room that is kept for them is not lost. */
export const usedPerMinute = ({ meanTokens, everyMs }: Demand): number =>
  everyMs === 0 ? 0 : meanTokens * (60_000 / Math.max(1_000, everyMs))
