/** The work of `journal export` and `journal import`, apart from their flags. */
import { createReadStream, createWriteStream } from 'node:fs'
import { createInterface } from 'node:readline'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { exportJournal, importJournal } from '../journal/transfer.ts'
import { CliFailure } from './failure.ts'

/** Writes the journal's lines to `out`, or to standard output when null. Returns the number of lines. */
export const writeExport = async (journal: string, out: string | null): Promise<number> => {
  let count = 0
  const source = exportJournal(journal)[Symbol.asyncIterator]()
  // The journal is read before `out` is made, so that a wrong path leaves no file.
  const first = await source.next()
  async function* lines(): AsyncGenerator<string> {
    for (let step = first; step.done !== true; step = await source.next()) {
      count += 1
      yield step.value
    }
  }
  if (out === null) {
    for await (const line of lines()) await written(line)
  } else {
    // An export is often the only copy left, so it never overwrites a file.
    await pipeline(Readable.from(lines()), createWriteStream(out, { flags: 'wx', mode: 0o600 }))
  }
  return count
}

/** Does not end standard output, which belongs to the process. A reader such as `head` may stop early. */
const written = (line: string): Promise<void> =>
  new Promise((resolve, reject) => {
    process.stdout.write(line, (error) => (error == null ? resolve() : reject(error)))
  })

/** Reads lines from `file`, or from standard input when `-`. */
export const readImport = async (
  journal: string,
  file: string,
): Promise<{ readonly entries: number; readonly checkpoints: number }> => {
  const input = file === '-' ? process.stdin : await opened(file)
  return importJournal(journal, createInterface({ input, crlfDelay: Number.POSITIVE_INFINITY }))
}

/** Opens a file first: an unreadable stream would fail without a listener, or look like an empty file. */
const opened = (file: string): Promise<NodeJS.ReadableStream> =>
  new Promise((resolve, reject) => {
    const stream = createReadStream(file)
    stream.once('open', () => resolve(stream))
    stream.once('error', (error) => reject(new CliFailure({ message: `import ${file}: ${error.message}` })))
  })
