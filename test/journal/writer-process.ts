/**
 * A process that writes a journal, for tests that need a real second process. It prints one JSON
 * line for each event, synchronously, so that no line is lost in a kill.
 *
 * Arguments: path, mode, options as JSON. Modes: `hold` appends ten entries and stays until it is
 * killed; `flood` appends without end; `leave` appends ten, closes nothing and runs out of work;
 * `idle` only opens.
 */
import { writeSync } from 'node:fs'
import type { JournalEntry } from '../../src/journal/journal.ts'
import { openSqliteJournal, type SqliteJournalOptions } from '../../src/journal/sqlite.ts'

const [path = '', mode = '', options = '{}'] = process.argv.slice(2)

const say = (line: object): void => {
  writeSync(1, `${JSON.stringify(line)}\n`)
}

const entry = (n: number): JournalEntry => {
  return { scope: `scope ${n % 3}`, at: n, record: JSON.stringify({ event: { n, text: 'x'.repeat(200) } }) }
}

try {
  const journal = await openSqliteJournal(path, JSON.parse(options) as SqliteJournalOptions)
  let sent = 0
  const send = (count: number) => {
    for (let n = 0; n < count; n++) sent = journal.append(entry(n))
  }
  journal.listen({
    durable: (through) => {
      say({ durable: through })
      if (mode === 'flood') send(1 + (through % 97))
    },
    failed: (failure) => say({ failed: failure.message }),
  })
  say({ opened: process.pid })
  if (mode === 'hold' || mode === 'leave') send(10)
  if (mode === 'flood') send(200)
  if (mode === 'hold') setInterval(() => {}, 60_000)
  process.on('exit', () => say({ exit: sent }))
} catch (error) {
  say({ refused: String(error) })
}
