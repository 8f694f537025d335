/**
 * The scope's own core, run again in the page: the same machine over the same events, so that any
 * moment looks as `rightofway replay --at` says, without asking the host.
 */
import {
  type Arrow,
  advance,
  type Decision,
  type ScopeContext,
  type ScopeEvent,
} from '../../../../machines/index.ts'

/** The context after some more events. */
export const contextAfter = (context: ScopeContext, events: ReadonlyArray<ScopeEvent>): ScopeContext =>
  events.reduce((before, event) => advance(before, event), context)

/** The arrows of the statechart that one event took, in order. */
export const arrowsTaken = (context: ScopeContext, event: ScopeEvent): ReadonlyArray<Arrow> => {
  const taken: Arrow[] = []
  advance(context, event, (arrow) => taken.push(arrow))
  return taken
}

/** Whether the replay decides what was decided: the reasons that are shown are those of this core. */
export const agrees = (recorded: ReadonlyArray<Decision>, replayed: ReadonlyArray<Decision>): boolean =>
  recorded.length === replayed.length &&
  recorded.every((decision, index) => {
    const other = replayed[index] as Decision
    return (
      decision.callId === other.callId &&
      decision.verdict === other.verdict &&
      decision.reason === other.reason
    )
  })
