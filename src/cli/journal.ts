/** `rightofway journal` and its verbs. */
import { Console, Effect, Option } from 'effect'
import { Argument, Command, Flag } from 'effect/cli'
import { attempt, CliFailure } from './failure.ts'
import { journalFlags, journalPath, jsonFlag } from './flags.ts'

const plural = (count: number, one: string, many = `${one}s`): string =>
  `${count} ${count === 1 ? one : many}`

const check = Command.make(
  'check',
  { ...journalFlags, json: jsonFlag },
  Effect.fn(function* ({ journal, config, json }) {
    const path = yield* journalPath(journal, config)
    const { checkJournal } = yield* attempt(() => import('../journal/check.ts'))
    const { historyProblems } = yield* attempt(() => import('../host/check-history.ts'))
    const found = yield* attempt(() => checkJournal(path, historyProblems))
    const { ok, entries, scopes, problems, notes, schemaVersion } = found
    if (json) yield* Console.log(JSON.stringify(found))
    else {
      const summary = `${plural(entries, 'good entry', 'good entries')} of ${plural(scopes.length, 'scope')}, schema version ${schemaVersion}`
      yield* Console.log(`journal ${path}: ${summary}`)
      for (const { row, problem } of problems) yield* Console.log(`${row}: ${problem}`)
      for (const note of notes) yield* Console.log(`note: ${note}`)
    }
    if (ok) return
    return yield* new CliFailure({
      message: `journal ${path} has ${plural(problems.length, 'problem')}; 'rightofway journal repair' keeps all that can be read`,
    })
  }),
).pipe(
  Command.withDescription(
    'Check every row and all that it says, as a host that opens it would; change nothing. ' +
      'Exit code 0: sound. 1: it has problems, or cannot be read',
  ),
)

const repair = Command.make(
  'repair',
  { ...journalFlags, json: jsonFlag },
  Effect.fn(function* ({ journal, config, json }) {
    const path = yield* journalPath(journal, config)
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

const outFlag = Flag.String('out').pipe(
  Flag.withDescription('File to write (default: standard output); it must not exist'),
  Flag.optional,
)

const exportLines = Command.make(
  'export',
  { ...journalFlags, out: outFlag, json: jsonFlag },
  Effect.fn(function* ({ journal, config, out, json }) {
    const path = yield* journalPath(journal, config)
    const { writeExport } = yield* attempt(() => import('./transferring.ts'))
    const count = yield* attempt(() => writeExport(path, Option.getOrNull(out)))
    if (Option.isNone(out)) return
    yield* Console.log(
      json
        ? JSON.stringify({ lines: count, out: out.value })
        : `journal ${path}: wrote ${plural(count, 'line')} to ${out.value}`,
    )
  }),
).pipe(Command.withDescription('Write a journal as lines of JSON, also while a host writes it'))

const importLines = Command.make(
  'import',
  {
    file: Argument.String('file').pipe(
      Argument.withDescription('What `journal export` wrote; - for standard input'),
    ),
    ...journalFlags,
    json: jsonFlag,
  },
  Effect.fn(function* ({ file, journal, config, json }) {
    const path = yield* journalPath(journal, config)
    const { readImport } = yield* attempt(() => import('./transferring.ts'))
    const done = yield* attempt(() => readImport(path, file))
    if (json) return yield* Console.log(JSON.stringify(done))
    const { entries, checkpoints } = done
    yield* Console.log(
      `journal ${path}: took ${plural(entries, 'entry', 'entries')} and ${plural(checkpoints, 'checkpoint')}`,
    )
  }),
).pipe(Command.withDescription('Make a new journal from an export, whole or not at all'))

const backup = Command.make(
  'backup',
  {
    out: Argument.String('out').pipe(Argument.withDescription('File to write; it must not exist')),
    ...journalFlags,
    json: jsonFlag,
  },
  Effect.fn(function* ({ out, journal, config, json }) {
    const path = yield* journalPath(journal, config)
    const { backupJournal } = yield* attempt(() => import('../journal/backup.ts'))
    const done = yield* attempt(() => backupJournal(path, out))
    yield* Console.log(
      json
        ? JSON.stringify(done)
        : `journal ${path}: copied ${plural(done.entries, 'entry', 'entries')} to ${out}`,
    )
  }),
).pipe(
  Command.withDescription(
    'Copy a journal as it is at one moment, also while a host writes it. ' +
      'Exit code 0: copied. 1: the journal cannot be read, or the copy exists already',
  ),
)

const dryRunFlag = Flag.Boolean('dry-run').pipe(
  Flag.withDescription('Say what would be done; change nothing'),
  Flag.withDefault(false),
)

const migrate = Command.make(
  'migrate',
  { dryRun: dryRunFlag, ...journalFlags, json: jsonFlag },
  Effect.fn(function* ({ dryRun, journal, config, json }) {
    const path = yield* journalPath(journal, config)
    const { migrateJournal, plannedMigration } = yield* attempt(() => import('../journal/upkeep.ts'))
    const done = yield* attempt(async () => (dryRun ? plannedMigration(path) : migrateJournal(path)))
    if (json) return yield* Console.log(JSON.stringify(done))
    const { from, to, steps } = done
    if (steps.length === 0)
      return yield* Console.log(`journal ${path}: schema version ${from} is what this release writes`)
    const verb = dryRun ? 'would be brought' : 'was brought'
    yield* Console.log([`journal ${path}: ${verb} from schema version ${from} to ${to}`, ...steps].join('\n'))
  }),
).pipe(
  Command.withDescription(
    'Bring a journal up to date, as a host that opens it does. ' +
      'Exit code 0: it is up to date, or --dry-run has said what would be done. ' +
      '1: a host has it open, or a newer release wrote it, or it cannot be read',
  ),
)

const dropFlag = Flag.String('drop').pipe(
  Flag.withDescription('Drop what the journal knows of this scope; no host may have it open'),
  Flag.optional,
)

const scopes = Command.make(
  'scopes',
  { drop: dropFlag, ...journalFlags, json: jsonFlag },
  Effect.fn(function* ({ drop, journal, config, json }) {
    const path = yield* journalPath(journal, config)
    const { dropScope, listScopes } = yield* attempt(() => import('../journal/upkeep.ts'))
    if (Option.isSome(drop)) {
      const dropped = yield* attempt(() => dropScope(path, drop.value))
      if (!dropped) return yield* new CliFailure({ message: `journal ${path} knows no scope ${drop.value}` })
      return yield* Console.log(
        json ? JSON.stringify({ dropped: drop.value }) : `journal ${path}: dropped ${drop.value}`,
      )
    }
    const known = yield* attempt(() => listScopes(path))
    if (json) return yield* Console.log(JSON.stringify(known))
    for (const { scope, at, resting } of known) {
      const since = at === null ? 'no checkpoint yet' : `checkpoint of ${new Date(at).toISOString()}`
      yield* Console.log(`${scope}: ${resting ? 'at rest' : 'live'}, ${since}`)
    }
  }),
).pipe(
  Command.withDescription(
    'List the scopes that a journal knows, or drop one. ' +
      'Exit code 0: listed or dropped. 1: it knows no such scope, or a host has it open, or it cannot be read',
  ),
)

const keepHoursFlag = Flag.Int('keep-hours').pipe(
  Flag.withDescription('Keep what is younger than this (default: 24)'),
  Flag.optional,
)

const compact = Command.make(
  'compact',
  { keepHours: keepHoursFlag, ...journalFlags, json: jsonFlag },
  Effect.fn(function* ({ keepHours, journal, config, json }) {
    const path = yield* journalPath(journal, config)
    const { compactJournal } = yield* attempt(() => import('../journal/upkeep.ts'))
    const hours = Option.getOrElse(keepHours, () => 24)
    if (hours < 0) return yield* new CliFailure({ message: `--keep-hours must be 0 or more, got ${hours}` })
    const done = yield* attempt(() => compactJournal(path, hours * 3_600_000))
    yield* Console.log(
      json ? JSON.stringify(done) : `journal ${path}: dropped ${plural(done.dropped, 'entry', 'entries')}`,
    )
  }),
).pipe(
  Command.withDescription(
    'Drop entries that checkpoints stand for and that are old enough. ' +
      'Exit code 0: done, also where nothing was old enough. 1: a host has it open, or it cannot be read',
  ),
)

export const journalVerb = Command.make('journal').pipe(
  Command.withDescription('Look after a journal file'),
  Command.withSubcommands([check, repair, backup, scopes, compact, migrate, exportLines, importLines]),
)
