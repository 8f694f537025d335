import { mkdtempSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { contenders, type PolicyName, policyNames } from '../../src/simulation/arena/contenders.ts'
import type { TraceArrival } from '../../src/simulation/arena/format.ts'
import { loadScenario, ScenarioUnreadable } from '../../src/simulation/arena/load.ts'
import { type Run, runPolicy } from '../../src/simulation/arena/run.ts'
import { parseScenario } from '../../src/simulation/arena/scenario.ts'
import {
  parseTrace,
  readTraces,
  rowsOf,
  TraceMissing,
  TraceUnreadable,
} from '../../src/simulation/arena/trace.ts'
import { pauseAfterFailureMs } from '../../src/simulation/arena/traffic.ts'
import { callsAt, tinyScenario, workers } from './tiny.ts'

const busy = (seed: number) =>
  tinyScenario(
    [
      { rule: 'token-bucket', inputTokensPerMinute: 6_000, states: 'retry-after' },
      { rule: 'overload', probability: 0.1 },
    ],
    [
      workers('a', 3, { uniform: [100, 900] }, { uniform: [10, 400] }),
      workers('b', 2, { lognormal: [300, 0.7] }, 100),
      {
        lane: 'primary',
        principal: 'p',
        arrival: { kind: 'poisson', perMinute: 4 },
        inputTokens: { lognormal: [800, 0.8, 5_000] },
      },
    ],
    { durationMs: 300_000, seed },
  )

const shapesOf = (run: Run) => new Map(run.records.map(({ call }) => [call.id, call]))

describe('arrivals', () => {
  const runs = new Map<PolicyName, Run>(
    policyNames.map((name) => [name, runPolicy(busy(3), contenders[name])]),
  )

  test('the same seed gives the same run, to the last refusal', () => {
    for (const name of policyNames) {
      const again = runPolicy(busy(3), contenders[name])
      expect(again.log, name).toEqual(runs.get(name)!.log)
      expect(again.records, name).toEqual(runs.get(name)!.records)
    }
  })

  test('another seed gives another run', () => {
    expect(runPolicy(busy(4), contenders.oracle).log).not.toEqual(runs.get('oracle')!.log)
  })

  test('every policy meets the same calls, and those by the clock at the same times', () => {
    const shapes = shapesOf(runs.get('oracle')!)
    const clocked = (run: Run) =>
      run.records.flatMap(({ call, submittedAtMs }) =>
        call.lane === 'primary' ? [[call.id, submittedAtMs]] : [],
      )
    for (const [name, run] of runs) {
      expect(clocked(run), name).toEqual(clocked(runs.get('oracle')!))
      for (const { call } of run.records) {
        const same = shapes.get(call.id)
        if (same !== undefined) expect(call, name).toEqual(same)
      }
    }
  })

  test('every call ends at most once, and is answered at most once', () => {
    for (const [name, { log, records }] of runs) {
      const counts = new Map<string, { accepted: number; completed: number; aborted: number }>()
      for (const { callId, kind } of log) {
        const count = counts.get(callId) ?? { accepted: 0, completed: 0, aborted: 0 }
        if (kind !== 'refused') count[kind] += 1
        counts.set(callId, count)
      }
      for (const { call, acceptedAtMs, endedAtMs, failed, refusals } of records) {
        const { accepted, completed, aborted } = counts.get(call.id) ?? {
          accepted: 0,
          completed: 0,
          aborted: 0,
        }
        const about = `${name} ${call.id}`
        expect(accepted - aborted, about).toBe(acceptedAtMs === null ? 0 : 1)
        expect(completed, about).toBe(endedAtMs === null || failed ? 0 : 1)
        if (failed) expect(acceptedAtMs, about).toBeNull()
        expect(refusals, about).toBe(
          log.filter(({ kind, callId }) => kind === 'refused' && callId === call.id).length,
        )
      }
    }
  })

  test('a worker makes its next call when the last has ended, after a pause when it failed', () => {
    const never = tinyScenario([{ rule: 'spend-cap', afterRequests: 1 }], [workers('a', 1, 5, 10)], {
      durationMs: 3_500,
    })
    const { records } = runPolicy(never, contenders['naive-retry'])
    // Answered after 1.1 s; then each is refused for good at once.
    expect(records.map(({ submittedAtMs }) => submittedAtMs)).toEqual([
      0,
      1_100,
      1_100 + pauseAfterFailureMs,
      1_100 + 2 * pauseAfterFailureMs,
    ])
  })

  test('calls that cost no time do not stop it', () => {
    const free = parseScenario({
      name: 'free',
      seed: 1,
      durationMs: 1_000,
      provider: {
        rule: 'overload',
        probability: 0,
        latency: { firstTokenMs: 0, perOutputTokenMs: 0 },
      },
      traffic: [workers('a', 1, 0)],
    })
    expect(runPolicy(free, contenders.oracle).records.length).toBeLessThanOrEqual(1_001)
  })

  test('a primary that came just before the end may go on waiting, and nothing new counts', () => {
    const late = tinyScenario(
      [{ rule: 'token-bucket', inputTokensPerMinute: 600, states: 'retry-after' }],
      [callsAt('auxiliary', 'a', [59_000], 600), callsAt('primary', 'p', [59_500, 60_000], 300)],
      { durationMs: 60_000 },
    )
    const { records } = runPolicy(late, contenders.oracle)
    expect(records.map(({ acceptedAtMs }) => acceptedAtMs)).toEqual([59_000, 89_000])
  })
})

describe('traces', () => {
  const csv = 'timestamp_ms,input_tokens,output_tokens\n0,10,1\n200,90,2\n100,50,3\n'
  const arrival: TraceArrival = { kind: 'trace', file: 't.csv' }
  const traces = new Map([['t.csv', parseTrace(csv, 't.csv')]])

  test('come in the order of their times, at their pace, by size', () => {
    expect(rowsOf(arrival, traces).map(({ atMs }) => atMs)).toEqual([0, 100, 200])
    expect(rowsOf({ ...arrival, scale: 4 }, traces).map(({ atMs }) => atMs)).toEqual([0, 25, 50])
    expect(rowsOf({ ...arrival, minInputTokens: 50 }, traces).map((row) => row.inputTokens)).toEqual([50, 90])
    expect(rowsOf({ ...arrival, maxInputTokens: 49 }, traces).map((row) => row.inputTokens)).toEqual([10])
  })

  test.each([
    ['another header', 'a,b,c\n1,2,3\n', 'line 1'],
    ['a missing column', `${csv}300,5\n`, 'line 5'],
    ['no number', `${csv}300,x,5\n`, 'line 5'],
    ['an empty cell', `${csv}300,,5\n`, 'line 5'],
    ['a fraction', `${csv}300,1.5,5\n`, 'line 5'],
  ])('with %s are refused with the line', (_name, text, place) => {
    expect(() => parseTrace(text, 't.csv')).toThrow(TraceUnreadable)
    expect(() => parseTrace(text, 't.csv')).toThrow(place)
  })

  test('are found beside the scenario or in the folder that is named, and missed clearly', () => {
    const [beside, elsewhere] = [mkdtempSync(join(tmpdir(), 'arena-')), mkdtempSync(join(tmpdir(), 'arena-'))]
    const scenario = tinyScenario(
      [{ rule: 'spend-cap', afterRequests: 9 }],
      [
        { lane: 'primary', arrival: { ...arrival, minInputTokens: 80 } },
        { lane: 'auxiliary', principal: 'b', arrival: { ...arrival, maxInputTokens: 79, principals: 2 } },
      ],
    )
    const looking = { scenarioDir: beside, tracesDir: elsewhere }
    expect(() => readTraces(scenario, looking)).toThrow(TraceMissing)
    expect(() => readTraces(scenario, looking)).toThrow(/t\.csv is not there .*--traces <dir>/)
    writeFileSync(join(elsewhere, 't.csv'), csv)
    const { records } = runPolicy(scenario, contenders.oracle, { traces: readTraces(scenario, looking) })
    const seen = records.map(({ call, submittedAtMs }) => [
      submittedAtMs,
      call.lane,
      call.principal,
      call.inputTokens,
      call.outputTokens,
    ])
    expect(seen).toEqual([
      [0, 'auxiliary', 'b-1', 10, 1],
      [100, 'auxiliary', 'b-2', 50, 3],
      [200, 'primary', 'principal', 90, 2],
    ])
  })

  test('a scenario file that is not there or no JSON is named', () => {
    const dir = mkdtempSync(join(tmpdir(), 'arena-'))
    writeFileSync(join(dir, 'bad.json'), '{')
    expect(() => loadScenario(join(dir, 'none.json'))).toThrow(ScenarioUnreadable)
    expect(() => loadScenario(join(dir, 'bad.json'))).toThrow(/bad\.json: is not JSON/)
  })
})
