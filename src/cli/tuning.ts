/** The work of `tune`, apart from its flags. */
import { writeFileSync } from 'node:fs'
import { openTables } from '../journal/reader.ts'
import { recordingOf } from '../simulation/tune/recording.ts'
import { recommendedPolicy, tuningPage, tuningText } from '../simulation/tune/text.ts'
import { type Tuning, tune } from '../simulation/tune/tune.ts'
import { CliFailure, lineOf } from './failure.ts'
import { historiesOf } from './histories.ts'

export interface TuneRequest {
  readonly journal: string
  /** Null for every scope with calls. */
  readonly scope: string | null
  readonly reportPath: string | null
  readonly json: boolean
}

/** Returns the text to print. Throws `CliFailure`, and the journal's own errors. */
export const tuned = ({ journal, scope, reportPath, json }: TuneRequest): string => {
  const tables = openTables(journal)
  try {
    const tunings: Tuning[] = []
    for (const [name, { history, snapshot }] of historiesOf(tables, scope, null)) {
      const recording = recordingOf(name, history, snapshot)
      if (recording.calls > 0) tunings.push(tune(recording))
    }
    if (tunings.length === 0) {
      const what = scope === null ? 'no recorded call' : `no call of the scope ${JSON.stringify(scope)}`
      throw new CliFailure({ message: `journal ${journal} has ${what}` })
    }
    if (reportPath !== null) writePage(reportPath, tuningPage(tunings))
    return tunings.map(json ? jsonOf : tuningText).join(json ? '\n' : '\n\n')
  } finally {
    tables.db.close()
  }
}

const jsonOf = (tuning: Tuning): string =>
  JSON.stringify({
    scope: tuning.recording.scope,
    limits: tuning.limits,
    policies: tuning.played.map(({ name, policy, result }) => ({ name, policy, ...result })),
    recommended: recommendedPolicy(tuning),
    confidence: tuning.confidence,
  })

const writePage = (path: string, html: string): void => {
  try {
    writeFileSync(path, html)
  } catch (error) {
    throw new CliFailure({ message: `report ${path}: ${lineOf(error)}` })
  }
}
