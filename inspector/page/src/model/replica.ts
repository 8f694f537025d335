/**
 * The scope's core, run again in the page: the same machine over the same events. Any moment then looks as
 * `rightofway replay --at` shows it, without a question to the host.
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

/** Whether the replay made the recorded decisions: only then the shown reasons are the recorded ones. */
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
