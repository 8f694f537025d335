/** A scope's transition as XState's own interpreter makes it, step by step: what the walk is held against. */
import { StateMachine } from 'xstate'
import { providerScope } from '../../../machines/index.ts'
import { continued } from '../../../machines/state/draft.ts'
import { announce } from '../../../machines/statechart/step.ts'

type Transition = typeof providerScope.transition

export const interpretedTransition: Transition = (snapshot, event, actorScope) => {
  const next = StateMachine.prototype.transition.call(
    providerScope,
    snapshot,
    event,
    actorScope as never,
  ) as typeof snapshot
  const draft = continued(next.context.scope)
  announce(draft)
  return { ...next, context: { scope: draft } }
}
