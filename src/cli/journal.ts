/** `rightofway journal check`, `repair`, `scopes`, `export` and `import`. */
import { Console, Effect, Option } from 'effect'
import { Argument, Command, Flag } from 'effect/cli'
import { attempt, CliFailure } from './failure.ts'
import { journalFlag, jsonFlag } from './flags.ts'

const pathOf = Effect.fn(function* (journal: Option.Option<string>) {
  const { defaultJournal } = yield* attempt(() => import('../gateway/config/config.ts'))
  return Option.getOrElse(journal, () => defaultJournal)
})

const plural = (count: number, one: string, many = `${one}s`): string =>
  `${count} ${count === 1 ? one : many}`

const check = Command.make(
  'check',
  { journal: journalFlag, json: jsonFlag },
  Effect.fn(function* ({ journal, json }) {
    const path = yield* pathOf(journal)
    const { checkJournal } = yield* attempt(() => import('../journal/check.ts'))
    const found = yield* attempt(() => checkJournal(path))
    const { ok, entries, scopes, problems, schemaVersion } = found
    if (json) yield* Console.log(JSON.stringify(found))
    else {
      const summary = `${plural(entries, 'good entry', 'good entries')} of ${plural(scopes.length, 'scope')}, schema version ${schemaVersion}`
      yield* Console.log(`journal ${path}: ${summary}`)
      for (const { row, problem } of problems) yield* Console.log(`${row}: ${problem}`)
    }
    if (ok) return
    return yield* new CliFailure({
      message: `journal ${path} has ${plural(problems.length, 'problem')}; 'rightofway journal repair' keeps all that can be read`,
    })
  }),
).pipe(Command.withDescription('Check every row, also while a host writes; change nothing'))

const repair = Command.make(
  'repair',
  { journal: journalFlag, json: jsonFlag },
  Effect.fn(function* ({ journal, json }) {
    const path = yield* pathOf(journal)
    const { repairJournal } = yield* attempt(() => import('../journal/repair.ts'))
    const { mendScope } = yield* attempt(() => import('../host/mend.ts'))
    const done = yield* attempt(() => repairJournal(path, mendScope))
    if (json) return yield* Console.log(JSON.stringify(done))
    if (!done.repaired) return yield* Console.log(`journal ${path}: nothing was wrong, nothing was touched`)
    const { kept, movedAside, copy, aside, lost, holedScopes, lostScopes, unknownCalls } = done
    yield* Console.log(
      [
        `journal ${path}: kept ${plural(kept.entries, 'entry', 'entries')} and ${plural(kept.checkpoints, 'checkpoint')}`,
        `set aside ${plural(movedAside.entries, 'entry', 'entries')} and ${plural(movedAside.checkpoints, 'checkpoint')} in ${aside}`,
        `the file as it was: ${copy}`,
        ...lost.map((range) => `lost: ${range}`),
        ...holedScopes.map(
          (scope) =>
            `scope ${scope} ${lostScopes.includes(scope) ? 'starts anew' : 'goes on with a hole in its history'}`,
        ),
        ...unknownCalls.map(
          ({ scope, callId }) => `call ${callId} in ${scope}: its outcome is unknown, it is never sent again`,
        ),
      ].join('\n'),
    )
  }),
).pipe(Command.withDescription('Keep all that can be read, and set the rest aside'))

const dropFlag = Flag.String('drop').pipe(
  Flag.withDescription(
    'Forget this scope: its waits, its ended calls, what was learned; no host may be writing',
  ),
  Flag.optional,
)

const scopes = Command.make(
  'scopes',
  { journal: journalFlag, drop: dropFlag, json: jsonFlag },
  Effect.fn(function* ({ journal, drop, json }) {
    const path = yield* pathOf(journal)
    const { dropScope, listScopes } = yield* attempt(() => import('./scope-list.ts'))
    if (Option.isSome(drop)) {
      yield* attempt(() => dropScope(path, drop.value))
      return yield* Console.log(`journal ${path}: forgot scope ${drop.value}`)
    }
    const known = yield* attempt(() => listScopes(path))
    if (json) return yield* Console.log(JSON.stringify(known))
    yield* Console.log(`journal ${path}: ${plural(known.length, 'scope')}`)
    for (const { scope, at, resting } of known) {
      const last = at === null ? 'no checkpoint yet' : `checkpoint of ${new Date(at).toISOString()}`
      yield* Console.log(`${scope}  ${last}${resting ? ', at rest' : ''}`)
    }
  }),
).pipe(Command.withDescription('List the scopes, also while a host writes, or forget one'))

const outFlag = Flag.String('out').pipe(
  Flag.withDescription('File to write (default: standard output); it must not exist'),
  Flag.optional,
)

const exportLines = Command.make(
  'export',
  { journal: journalFlag, out: outFlag },
  Effect.fn(function* ({ journal, out }) {
    const path = yield* pathOf(journal)
    const { writeExport } = yield* attempt(() => import('./transferring.ts'))
    const count = yield* attempt(() => writeExport(path, Option.getOrNull(out)))
    if (Option.isSome(out))
      yield* Console.log(`journal ${path}: wrote ${plural(count, 'line')} to ${out.value}`)
  }),
).pipe(Command.withDescription('Write a journal as lines of JSON, also while a host writes it'))

const importLines = Command.make(
  'import',
  {
    file: Argument.String('file').pipe(
      Argument.withDescription('What `journal export` wrote; - for standard input'),
    ),
    journal: journalFlag,
    json: jsonFlag,
  },
  Effect.fn(function* ({ file, journal, json }) {
    const path = yield* pathOf(journal)
    const { readImport } = yield* attempt(() => import('./transferring.ts'))
    const done = yield* attempt(() => readImport(path, file))
    if (json) return yield* Console.log(JSON.stringify(done))
    const { entries, checkpoints } = done
    yield* Console.log(
      `journal ${path}: took ${plural(entries, 'entry', 'entries')} and ${plural(checkpoints, 'checkpoint')}`,
    )
  }),
).pipe(Command.withDescription('Make a new journal from an export, whole or not at all'))

export const journalVerb = Command.make('journal').pipe(
  Command.withDescription('Look after a journal file'),
  Command.withSubcommands([check, repair, scopes, exportLines, importLines]),
)
