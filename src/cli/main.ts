/** The command line: one verb, one file. */
import * as NodeRuntime from '@effect/platform-node/NodeRuntime'
import * as NodeServices from '@effect/platform-node/NodeServices'
import { Cause, Console, Effect, Exit } from 'effect'
import { CliError, Command } from 'effect/cli'
import { CliFailure, lineOf } from './failure.ts'
import { verbs } from './verbs.ts'
import { version } from './version.ts'

const program = Command.make('rightofway').pipe(
  Command.withDescription('The primary LLM call has the right of way; background calls get their share.'),
  Command.withSubcommands(verbs),
  Command.run({ version }),
  Effect.tapCause((cause) => {
    const error = Cause.squash(cause)
    // The user has already seen this fault of the command line, with the help that mends it.
    if (Cause.hasInterruptsOnly(cause) || CliError.isCliError(error)) return Effect.void
    if (error instanceof CliFailure && error.isShown) return Effect.void
    return Console.error(`rightofway: ${lineOf(error)}`)
  }),
  Effect.provide(NodeServices.layer),
)

NodeRuntime.runMain(program, {
  // Every failure has printed its line; a stack would only hide it.
  disableErrorReporting: true,
  // SIGINT and SIGTERM ask the program to stop: then a stop is a success.
  teardown: (exit, onExit) => {
    if (Exit.isSuccess(exit) || Cause.hasInterruptsOnly(exit.cause)) return onExit(0)
    const error = Cause.squash(exit.cause)
    onExit(error instanceof CliFailure ? (error.code ?? 1) : 1)
  },
})
