/** Recorded traffic: CSV with the columns `timestamp_ms,input_tokens,output_tokens`. */

import { existsSync, readFileSync } from 'node:fs'
import { isAbsolute, join, resolve } from 'node:path'
import { Data } from 'effect'
import type { TraceArrival } from './format.ts'
import type { Scenario } from './scenario.ts'

export interface TraceRow {
  /** From the first request, ms. */
  readonly atMs: number
  readonly inputTokens: number
  readonly outputTokens: number
}

/** A trace that a scenario names is missing: name its folder, or leave the scenario out. */
export class TraceMissing extends Data.TaggedError('TraceMissing')<{ readonly message: string }> {
  constructor(file: string, looked: ReadonlyArray<string>) {
    super({
      message: `trace ${file} is not there (looked at ${looked.join(', ')}); say where it is with --traces <dir>`,
    })
  }
}

/** A trace that cannot be read: names the line and its content. */
export class TraceUnreadable extends Data.TaggedError('TraceUnreadable')<{ readonly message: string }> {
  constructor(path: string, line: number, got: string) {
    super({
      message: `${path} line ${line}: expected timestamp_ms,input_tokens,output_tokens as whole numbers of at least 0, got ${JSON.stringify(got)}`,
    })
  }
}

const header = 'timestamp_ms,input_tokens,output_tokens'

/** Rows in the order of their times. Throws `TraceUnreadable`. */
export const parseTrace = (csv: string, path: string): ReadonlyArray<TraceRow> => {
  const [first = '', ...lines] = csv.trimEnd().split(/\r?\n/)
  if (first.trim() !== header) throw new TraceUnreadable(path, 1, first)
  const rows = lines.map((line, index) => {
    const numbers = line.split(',').map((cell) => (cell.trim() === '' ? Number.NaN : Number(cell)))
    const [atMs, inputTokens, outputTokens] = numbers
    if (numbers.length !== 3 || !numbers.every((value) => Number.isSafeInteger(value) && value >= 0)) {
      throw new TraceUnreadable(path, index + 2, line)
    }
    return { atMs: atMs!, inputTokens: inputTokens!, outputTokens: outputTokens! }
  })
  return rows.sort((one, other) => one.atMs - other.atMs)
}

export interface TracePlaces {
  /** Folder of the scenario file. */
  readonly scenarioDir: string
  /** Folder of traces, if one was named. */
  readonly tracesDir: string | null
}

/** Rows of each trace by the file's name as the scenario gives it. */
export type Traces = ReadonlyMap<string, ReadonlyArray<TraceRow>>

const placesOf = (file: string, { scenarioDir, tracesDir }: TracePlaces): ReadonlyArray<string> => {
  if (isAbsolute(file)) return [file]
  return tracesDir === null
    ? [resolve(scenarioDir, file)]
    : [resolve(scenarioDir, file), join(tracesDir, file)]
}

/** Reads every trace that the scenario names. Throws `TraceMissing` and `TraceUnreadable`. */
export const readTraces = (scenario: Scenario, places: TracePlaces): Traces => {
  const traces = new Map<string, ReadonlyArray<TraceRow>>()
  for (const { arrival } of [...scenario.traffic, ...scenario.provider.strangers]) {
    if (arrival.kind !== 'trace' || traces.has(arrival.file)) continue
    const looked = placesOf(arrival.file, places)
    const path = looked.find((place) => existsSync(place))
    if (path === undefined) throw new TraceMissing(arrival.file, looked)
    traces.set(arrival.file, parseTrace(readFileSync(path, 'utf8'), path))
  }
  return traces
}

/** The rows that an arrival takes, at its pace. */
export const rowsOf = (arrival: TraceArrival, traces: Traces): ReadonlyArray<TraceRow> => {
  const { file, scale = 1, minInputTokens = 0, maxInputTokens = Number.POSITIVE_INFINITY } = arrival
  const rows = traces.get(file)
  if (rows === undefined) throw new TraceMissing(file, ['the traces that were read'])
  return rows
    .filter(({ inputTokens }) => inputTokens >= minInputTokens && inputTokens <= maxInputTokens)
    .map((row) => ({ ...row, atMs: Math.round(row.atMs / scale) }))
}
