/** The comparison as a table, for a terminal and for the report. */
import type { ArenaResult, PolicyResult } from '../arena.ts'
import { duration, share, tokens } from './words.ts'

export interface Column {
  readonly name: string
  readonly meaning: string
  readonly show: (result: PolicyResult) => string
}

export const columns: ReadonlyArray<Column> = [
  {
    name: 'wait mean',
    meaning: 'Primaries: submission to acceptance, mean',
    show: ({ meanPrimaryWaitMs }) => duration(meanPrimaryWaitMs),
  },
  {
    name: 'p50',
    meaning: 'The same, median',
    show: ({ primaryWaitMs }) => duration(primaryWaitMs.p50),
  },
  {
    name: 'p95',
    meaning: 'The same, 95th percentile',
    show: ({ primaryWaitMs }) => duration(primaryWaitMs.p95),
  },
  { name: 'max', meaning: 'The same, longest', show: ({ primaryWaitMs }) => duration(primaryWaitMs.max) },
  {
    name: 'unserved',
    meaning: 'Primaries that were never accepted',
    show: ({ primariesUnserved }) => String(primariesUnserved),
  },
  {
    name: 'wait/best',
    meaning: 'Mean primary wait against the bound that no schedule beats, a second added to both',
    show: ({ primaryWaitVsClairvoyant }) => share(primaryWaitVsClairvoyant),
  },
  {
    name: 'aux tokens',
    meaning: 'Input tokens of auxiliaries served',
    show: ({ auxiliaryTokensServed }) => tokens(auxiliaryTokensServed),
  },
  {
    name: 'aux deferral',
    meaning: 'Longest wait of an auxiliary',
    show: ({ auxiliaryMaxDeferralMs }) => duration(auxiliaryMaxDeferralMs),
  },
  {
    name: 'refusals',
    meaning: 'Dispatches refused by the provider: primaries + auxiliaries',
    show: ({ refusals }) => `${refusals.primary} + ${refusals.auxiliary}`,
  },
  { name: 'jain', meaning: 'Fairness between principals, at most 1', show: ({ jain }) => share(jain) },
  {
    name: 'used',
    meaning: 'Share of what the provider would have taken',
    show: ({ utilization }) => share(utilization),
  },
  {
    name: 'wait/oracle',
    meaning: 'Mean primary wait against the oracle, a second added to both',
    show: ({ primaryWaitVsOracle }) => share(primaryWaitVsOracle),
  },
  {
    name: 'aux/oracle',
    meaning: 'Auxiliary tokens against the oracle',
    show: ({ auxiliaryTokensVsOracle }) => share(auxiliaryTokensVsOracle),
  },
  {
    name: 'aux/best',
    meaning: 'Auxiliary tokens against what the bound leaves where all primaries are served',
    show: ({ auxiliaryTokensVsClairvoyant }) => share(auxiliaryTokensVsClairvoyant),
  },
  {
    name: 'refusals/naive',
    meaning: 'Refusals against naive retries',
    show: ({ refusalsVsNaive }) => refusalsVsNaive.toFixed(3),
  },
]

/** Lines for a terminal: a heading, and one line per policy. */
export const textTable = (result: ArenaResult): string => {
  const rows = [
    ['policy', ...columns.map(({ name }) => name)],
    ...Object.entries(result.policies).map(([policy, metrics]) => [
      policy,
      ...columns.map(({ show }) => show(metrics)),
    ]),
  ]
  const widths = rows[0]!.map((_, column) => Math.max(...rows.map((row) => row[column]!.length)))
  return rows
    .map((row) =>
      row
        .map((cell, column) => (column === 0 ? cell.padEnd(widths[column]!) : cell.padStart(widths[column]!)))
        .join('  '),
    )
    .join('\n')
}
