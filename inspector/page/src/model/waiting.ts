/** The waiting calls of a scope, in the order in which a person wants to see them. */
import { HashMap } from 'effect'
import type { ScopeContext } from '../../../../machines/index.ts'

type Waiting = ScopeContext['waiting'] extends HashMap.HashMap<string, infer Value> ? Value : never

/**
 * Primaries before auxiliaries, and in each lane the call that has waited longest first. However many
 * auxiliaries wait, the primary that has waited longest is the first row.
 */
export const worstFirst = ({ waiting }: Pick<ScopeContext, 'waiting'>): ReadonlyArray<Waiting> =>
  [...HashMap.values(waiting)].sort(
    (one, other) =>
      Number(other.call.lane === 'primary') - Number(one.call.lane === 'primary') ||
      one.submittedAt - other.submittedAt ||
      one.seq - other.seq,
  )
