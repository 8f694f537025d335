/** The actor of one scope, as a host starts it, and whether it may rest. */
import { HashMap } from 'effect'
import { type Actor, createActor } from 'xstate'
import { contextFrom, type LiveScope, providerScope, type ScopeContext } from '../../machines/index.ts'

export type ScopeActor = Actor<typeof providerScope>

/** A scope's actor that continues from a context. It is started, so that it accepts events. */
export const startScope = (name: string, live = contextFrom(name)): ScopeActor => {
  const from: LiveScope = { status: 'active', live }
  // The refusal is thrown to the sender of the event, so it is not logged as well.
  const logger = () => {}
  return createActor(providerScope, { input: { scope: name }, snapshot: from as never, logger }).start()
}

/** Whether no call waits, runs or is due in a scope. The scope's next event makes up for the time that has passed. */
export const restsIn = (context: ScopeContext): boolean =>
  HashMap.isEmpty(context.waiting) &&
  HashMap.isEmpty(context.inFlight) &&
  HashMap.isEmpty(context.turns) &&
  (context.state === 'idle' || context.state === 'settled')
