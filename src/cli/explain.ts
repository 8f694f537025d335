/**
 * `rightofway explain <call-id>`: why a call waits, or how it ended, from the journal of a running or a dead
 * host.
 */
import { Console, Effect } from 'effect'
import { Argument, Command } from 'effect/cli'
import { attempt, CliFailure } from './failure.ts'
import { journalFlags, journalPath, jsonFlag } from './flags.ts'

const callId = Argument.String('call-id').pipe(
  Argument.withDescription('The call, as the gateway names it in x-rightofway-call-id'),
)

export const explainVerb = Command.make(
  'explain',
  { callId, ...journalFlags, json: jsonFlag },
  Effect.fn(function* ({ callId, journal, config, json }) {
    const path = yield* journalPath(journal, config)
    const explanation = yield* attempt(() => explain(path, callId))
    if (explanation === null) {
      return yield* new CliFailure({ message: `journal ${path} knows no call ${JSON.stringify(callId)}` })
    }
    if (json) return yield* Console.log(JSON.stringify(explanation))
    const { scope, standing, lines } = explanation
    yield* Console.log([`call ${callId} in ${scope}: ${standing}`, ...lines].join('\n'))
  }),
).pipe(Command.withDescription('Say why a call waits, or what became of it'))

const explain = async (path: string, callId: string) => {
  const [{ openSqliteReader }, { explainFrom, explainState }, { checkpointsNaming, stateInJournal }] =
    await Promise.all([
      import('../journal/reader.ts'),
      import('../host/explain.ts'),
      import('../host/explain-search.ts'),
    ])
  const reader = await openSqliteReader(path)
  try {
    // A dead host's calls are shown as they were at its last event.
    const now = reader.isWritten() ? { nowMs: Date.now() } : {}
    const stateOf = stateInJournal(reader, path)
    const explanation = await explainFrom(reader, path, callId, { stateOf, ...now })
    if (explanation !== null) return explanation
    // The call's entries are gone, but a checkpoint may still name it.
    for (const context of await checkpointsNaming(reader, callId)) {
      const known = explainState(context, callId, now.nowMs)
      if (known !== null) return known
    }
    return null
  } finally {
    reader.close()
  }
}
