/**
 * In which order primaries wait: by rank, then by arrival. A scope that sheds (`policy.qos`) plans
 * closer: hydration stands behind orchestration, and within a class the nearest deadline comes first,
 * none last, and only then does arrival decide. Auxiliaries come after all of them, in the turns of
 * their principals, whose own order of arrival nothing changes.
 */
import { HashMap } from 'effect'
import { empty, fromArray, insert, push, type Queue, toArray } from '../collections/queue.ts'
import { type Call, type PriorityClass, priorityRanks } from '../model/call.ts'
import type { Policy } from '../model/policy.ts'
import type { Place, Waiting } from '../state/calls.ts'
import { lookup } from '../state/context.ts'
import type { Draft } from '../state/draft.ts'
import { isNewest, isReady, seqOf } from './fairness.ts'

/** Which of the primaries' queues a class stands in; lower ones go first. */
export const rankOf = ({ qos }: Policy, priorityClass: PriorityClass): number =>
  qos !== null && priorityClass === 'hydration' ? 2 : priorityRanks[priorityClass]

/** Which queue a primary stands in: that of its class, or of the best that waits for it. */
export const standingRank = (policy: Policy, { call, inheritedRank }: Waiting): number => {
  const own = rankOf(policy, call.priorityClass)
  return inheritedRank === null ? own : Math.min(own, inheritedRank)
}

/** The best rank of the primaries that wait for a call, where it is better than the call's own; else null. */
export const inheritedFrom = ({ dependents, waiting, policy }: Draft, call: Call): number | null => {
  const own = rankOf(policy, call.priorityClass)
  let best = own
  for (const id of lookup(dependents, call.id) ?? []) {
    const dependent = lookup(waiting, id)
    if (dependent !== undefined) best = Math.min(best, standingRank(policy, dependent))
  }
  return best < own ? best : null
}

const bySeq = (one: Waiting, other: Waiting): number => one.seq - other.seq

const byDeadline = (one: Waiting, other: Waiting): number => {
  const [soon, late] = [one.call.deadlineAt, other.call.deadlineAt]
  if (soon === late) return bySeq(one, other)
  return soon === null ? 1 : late === null ? -1 : soon - late
}

const placeOf = ({ seq, call }: Waiting): Place => ({ seq, id: call.id })

/** The queue of its rank with `waiting` where it belongs. */
export const placed = (draft: Draft, queue: Queue<Place>, waiting: Waiting): Queue<Place> => {
  const place = placeOf(waiting)
  const { qos } = draft.policy
  if (isNewest(draft, waiting) && (qos === null || waiting.call.deadlineAt === null))
    return push(queue, place)
  if (qos === null) return insert(queue, place, seqOf)
  // A scope that sheds holds about `capacity` calls, so the queue is short enough to be put in order anew.
  const others = toArray(queue).flatMap(({ id, seq }) => {
    const other = lookup(draft.waiting, id)
    return other?.seq === seq && seq !== place.seq ? [other] : []
  })
  return fromArray([...others, waiting].sort(byDeadline).map(placeOf))
}

/** Puts the primaries in order anew: the policy, or a deadline, has changed. */
export const reorderPrimaries = (draft: Draft): void => {
  const order = draft.policy.qos === null ? bySeq : byDeadline
  const primaries: Array<Queue<Place>> = draft.primaries.map(() => empty())
  for (const waiting of [...HashMap.values(draft.waiting)].sort(order)) {
    if (waiting.call.lane !== 'primary' || !isReady(waiting)) continue
    const rank = standingRank(draft.policy, waiting)
    primaries[rank] = push(primaries[rank]!, placeOf(waiting))
  }
  draft.primaries = primaries
}
