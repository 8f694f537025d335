/** `rightofway simulate <scenario.json>`: compares policies on your traffic before production. */
import { Console, Effect, Option } from 'effect'
import { Argument, Command, Flag } from 'effect/cli'
import { attempt } from './failure.ts'
import { jsonFlag } from './flags.ts'

const scenarioFile = Argument.String('scenario').pipe(
  Argument.withDescription(
    'A scenario file (provider, limits and traffic as JSON), or the name of one that is shipped: seed-incident',
  ),
)
const policiesFlag = Flag.String('policies').pipe(
  Flag.withDescription('Policies to compare, separated by commas (default: all)'),
  Flag.optional,
)
const reportFlag = Flag.String('report').pipe(
  Flag.withDescription('Write a page with plots to this file'),
  Flag.optional,
)
const tracesFlag = Flag.String('traces').pipe(
  Flag.withDescription('Folder of the traces that the scenario names, where they do not stand beside it'),
  Flag.optional,
)

export const simulateVerb = Command.make(
  'simulate',
  { scenario: scenarioFile, policies: policiesFlag, json: jsonFlag, report: reportFlag, traces: tracesFlag },
  Effect.fn(function* ({ scenario, policies, json, report, traces }) {
    const { simulate } = yield* attempt(() => import('./simulating.ts'))
    const text = yield* attempt(() =>
      simulate({
        scenarioPath: scenario,
        policies: Option.getOrNull(policies),
        tracesDir: Option.getOrNull(traces),
        reportPath: Option.getOrNull(report),
        json,
      }),
    )
    yield* Console.log(text)
  }),
).pipe(Command.withDescription('Compare scheduling policies on a scenario, in virtual time'))
