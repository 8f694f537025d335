/** A recommendation from one's own journal: recorded against the emulator under known rules, it must be nearly the best under those rules. */
import { readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { tuned } from '../../src/cli/tuning.ts'
import type { RuleSpec } from '../../src/emulator/index.ts'
import type { Record } from '../../src/host/read-record.ts'
import { recordText } from '../../src/host/record-text.ts'
import { importJournal } from '../../src/journal/transfer.ts'
import { rightofway } from '../../src/simulation/arena/contenders.ts'
import { runPolicy } from '../../src/simulation/arena/run.ts'
import { parseScenario, type Scenario } from '../../src/simulation/arena/scenario.ts'
import { recordingOf } from '../../src/simulation/tune/recording.ts'
import { bestOf, isAsGood, playAll, tune } from '../../src/simulation/tune/tune.ts'
import { temporaryPath } from '../journal/fixture.ts'

const minuteMs = 60_000

const scenarioUnder = (rule: RuleSpec, seed = 7): Scenario =>
  parseScenario({
    name: 'recorded',
    seed,
    durationMs: 12 * minuteMs,
    provider: { rule: [rule] },
    traffic: [
      {
        lane: 'auxiliary',
        principal: 'a',
        arrival: { kind: 'poisson', perMinute: 7 },
        inputTokens: { uniform: [8_000, 25_000] },
        outputTokens: 200,
      },
      {
        lane: 'auxiliary',
        principal: 'b',
        arrival: { kind: 'poisson', perMinute: 7 },
        inputTokens: { uniform: [8_000, 25_000] },
        outputTokens: 200,
      },
      {
        lane: 'primary',
        arrival: { kind: 'poisson', perMinute: 0.6 },
        inputTokens: { uniform: [40_000, 70_000] },
        outputTokens: 300,
      },
    ],
  })

/** What a host would have written while it ran the traffic. */
const recorded = (scenario: Scenario, policy = {}): ReadonlyArray<Record> => {
  const history: Record[] = []
  runPolicy(
    scenario,
    rightofway(policy, (event, decisions) => history.push({ event, decisions })),
  )
  return history
}

const journalOf = async (history: ReadonlyArray<Record>): Promise<string> => {
  const path = temporaryPath()
  await importJournal(path, [
    JSON.stringify({ journal: 'rightofway', version: 1, retainedAfter: 0 }),
    ...history.map(({ event, decisions }, index) =>
      JSON.stringify({
        entry: {
          position: index + 1,
          at: event.at,
          scope: 'anthropic/k/m',
          record: recordText(event, decisions),
        },
      }),
    ),
    JSON.stringify({ end: { checkpoints: 0, entries: history.length } }),
  ])
  return path
}

const rules: ReadonlyArray<readonly [string, RuleSpec]> = [
  ['a bucket that says nothing', { rule: 'token-bucket', inputTokensPerMinute: 240_000, states: 'none' }],
  [
    'a bucket that states waits',
    { rule: 'token-bucket', inputTokensPerMinute: 240_000, states: 'retry-after' },
  ],
  [
    'a sliding window',
    { rule: 'token-window', form: 'sliding', inputTokensPerWindow: 240_000, states: 'none' },
  ],
  ['a fixed window', { rule: 'token-window', form: 'fixed', inputTokensPerWindow: 240_000, states: 'none' }],
]

describe.each(rules)('traffic recorded under %s', (_, rule) => {
  const scenario = scenarioUnder(rule)
  const recording = recordingOf('anthropic/k/m', recorded(scenario))
  const tuning = tune(recording)

  it('is read as it was: its calls, sizes, principals and refusals', () => {
    const { records, log } = runPolicy(scenario, rightofway({}))
    expect(recording.calls).toBe(records.length)
    const sum = [...recording.traces.values()].flat().reduce((tokens, row) => tokens + row.inputTokens, 0)
    expect(sum).toBe(records.reduce((tokens, { call }) => tokens + call.inputTokens, 0))
    expect(recording.refusals).toBe(log.filter(({ kind }) => kind === 'refused').length)
    expect(recording.streams.map(({ lane, principal }) => `${lane} ${principal}`).sort()).toEqual([
      'auxiliary a',
      'auxiliary b',
      'primary principal',
    ])
    expect(recording.firstTokenMs).toBeCloseTo(1_000, -2)
  })

  it('gets a policy that is within a tenth of the best of the grid under the true rule', () => {
    const truth = { ...scenario, traffic: recording.streams, durationMs: recording.durationMs }
    const played = playAll(truth, recording, tuning.played)
    const best = bestOf(played)
    expect(isAsGood(played, tuning.recommended.name), `${tuning.recommended.name} against ${best.name}`).toBe(
      true,
    )
    expect(tuning.confidence).toBeGreaterThan(0)
    expect(tuning.confidence).toBeLessThanOrEqual(1)
  })
})

describe('rightofway tune', () => {
  const bucket = rules[1]![1]

  it('prints what it believes, the table, and the policy; writes the page', async () => {
    const journal = await journalOf(recorded(scenarioUnder(bucket), { preset: 'contract', capacity: 9 }))
    const reportPath = temporaryPath()
    const text = tuned({ journal, scope: null, reportPath, json: false })
    expect(text).toMatch(/^anthropic\/k\/m: \d+ calls in /)
    expect(text).toMatch(/believed: limit: bucket, [\d.]+k to [\d.]+k input tokens a minute/)
    expect(text).toMatch(/as recorded/)
    const [, said] = /recommended \(\d+ % sure\): (\{.*\})$/m.exec(text) ?? []
    // What the operator states of the scope is kept.
    expect(JSON.parse(said as string)).toMatchObject({ capacity: 9 })
    const page = readFileSync(reportPath, 'utf8')
    expect(page).toContain('as recorded')
    expect(page).not.toMatch(/https?:/)
  })

  it('prints JSON', async () => {
    const journal = await journalOf(recorded(scenarioUnder(bucket)))
    const [line] = tuned({ journal, scope: 'anthropic/k/m', reportPath: null, json: true }).split('\n')
    const { scope, limits, policies, recommended, confidence } = JSON.parse(line as string)
    expect({ scope, limits, confidence }).toMatchObject({
      scope: 'anthropic/k/m',
      limits: [{ layer: 'limit', family: 'bucket' }],
      confidence: expect.any(Number),
    })
    expect(policies).toHaveLength(8)
    expect(recommended).toEqual(expect.any(Object))
  })

  it('recommends the default, and says that no limit was seen, where nothing was refused', () => {
    const free = scenarioUnder({ rule: 'token-bucket', inputTokensPerMinute: 100_000_000, states: 'none' })
    const tuning = tune(recordingOf('s', recorded(free)))
    expect(tuning.limits).toEqual([])
    expect(tuning.recommended.name).toBe('as recorded')
  })

  it('refuses a journal without the scope by its name', async () => {
    const journal = await journalOf(recorded(scenarioUnder(bucket)).slice(0, 2))
    const request = { journal, scope: 'other', reportPath: null, json: false }
    expect(() => tuned(request)).toThrow('no call of the scope "other"')
  })
})
