/** Fairness between principals with equal demands: the strictest test, without any model of shares. */
import { jainIndex } from './jain.ts'
import type { Run } from './run.ts'

/**
 * The smallest of Jain's indices over groups of auxiliary principals whose streams differ only in the name.
 * Each principal counts by its input tokens served within the duration. Null when no two streams are alike.
 */
export const jainOfEquals = ({ scenario, records }: Run): number | null => {
  const streams = new Map<string, string[]>()
  for (const { principal, lane, ...traffic } of scenario.traffic) {
    if (lane !== 'auxiliary' || traffic.arrival.kind === 'trace') continue
    streams.set(principal, [...(streams.get(principal) ?? []), JSON.stringify(traffic)])
  }
  const groups = new Map<string, string[]>()
  for (const [principal, asked] of streams) {
    const key = asked.toSorted().join()
    groups.set(key, [...(groups.get(key) ?? []), principal])
  }
  const served = new Map<string, number>()
  for (const { call, acceptedAtMs } of records) {
    if (call.lane !== 'auxiliary' || acceptedAtMs === null || acceptedAtMs >= scenario.durationMs) continue
    served.set(call.principal, (served.get(call.principal) ?? 0) + call.inputTokens)
  }
  const indices = [...groups.values()]
    .filter((principals) => principals.length > 1)
    .map((principals) => jainIndex(principals.map((principal) => served.get(principal) ?? 0)))
  return indices.length === 0 ? null : Math.min(...indices)
}
