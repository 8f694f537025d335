/** The work of `simulate`, apart from its flags: they are read before any of this is loaded. */
import { existsSync, writeFileSync } from 'node:fs'
import { parsePolicies, runArena } from '../simulation/arena/arena.ts'
import { policyNames } from '../simulation/arena/contenders.ts'
import { loadScenario } from '../simulation/arena/load.ts'
import { reportPage } from '../simulation/arena/report/page.ts'
import { textTable } from '../simulation/arena/report/table.ts'
import { shippedScenario } from '../simulation/arena/shipped.ts'
import { CliFailure, lineOf } from './failure.ts'

export interface SimulateRequest {
  readonly scenarioPath: string
  /** Names separated by commas; null for all. */
  readonly policies: string | null
  readonly tracesDir: string | null
  readonly reportPath: string | null
  readonly json: boolean
}

/** Runs the arena, writes the report if one is asked for, and returns the text to print. */
export const simulate = (request: SimulateRequest): string => {
  const { scenarioPath, policies, tracesDir, reportPath, json } = request
  const names =
    policies === null ? policyNames : parsePolicies(policies.split(',').map((name) => name.trim()))
  const { scenario, traces } = loadScenario(pathOf(scenarioPath), tracesDir)
  const outcome = runArena(scenario, { policies: names, traces, progress: progressBar() })
  if (reportPath !== null) writeReport(reportPath, reportPage(scenario, outcome))
  if (json) return JSON.stringify(outcome.result)
  const heading = `${scenario.name}: ${scenario.durationMs / 60_000} min of traffic, seed ${scenario.seed}`
  const report = reportPath === null ? [] : [`report: ${reportPath}`]
  return [heading, textTable(outcome.result), ...report].join('\n')
}

/** A file, or else a scenario of the package by its name. */
const pathOf = (stated: string): string => {
  if (existsSync(stated) || /[\\/.]/.test(stated)) return stated
  const { path, names } = shippedScenario(stated)
  if (path !== null) return path
  throw new CliFailure({
    message: `no scenario is named ${JSON.stringify(stated)}, and no file; there are ${names.join(', ')}`,
  })
}

const writeReport = (path: string, html: string): void => {
  try {
    writeFileSync(path, html)
  } catch (error) {
    throw new CliFailure({ message: `report ${path}: ${lineOf(error)}` })
  }
}

const barWidth = 30

/** Draws on standard error when that is a terminal; silent otherwise. */
const progressBar = (): ((policy: string, share: number) => void) => {
  const { stderr } = process
  if (!stderr.isTTY) return () => {}
  let drawn = -1
  return (policy, share) => {
    const percent = Math.floor(share * 100)
    if (percent === drawn) return
    drawn = percent
    const full = Math.round(share * barWidth)
    const bar = '█'.repeat(full) + '░'.repeat(barWidth - full)
    stderr.write(share >= 1 ? '\r\u001b[K' : `\r${bar} ${String(percent).padStart(3)} % ${policy}\u001b[K`)
  }
}
