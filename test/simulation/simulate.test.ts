import { mkdtempSync, readFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, test } from 'vitest'
import { InvalidInput } from '../../machines/index.ts'
import { simulate } from '../../src/cli/simulating.ts'
import { runArena } from '../../src/simulation/arena/arena.ts'
import { contenders, policyNames } from '../../src/simulation/arena/contenders.ts'
import { bestRival, inOrder } from '../../src/simulation/arena/rank.ts'
import { reportPage } from '../../src/simulation/arena/report/page.ts'
import { auxiliaryCounts, primarySpans, tokenSeries } from '../../src/simulation/arena/report/series.ts'
import { duration, tokens } from '../../src/simulation/arena/report/words.ts'
import { runPolicy } from '../../src/simulation/arena/run.ts'
import { TraceMissing } from '../../src/simulation/arena/trace.ts'
import { callsAt, tinyScenario } from './tiny.ts'

const scenarioPath = fileURLToPath(
  new URL('../../src/simulation/scenarios/made-conversation.json', import.meta.url),
)
const request = { scenarioPath, policies: null, tracesDir: null, reportPath: null, json: false }

describe('ranking', () => {
  const policies = (waits: Readonly<Record<string, readonly [number, number]>>) =>
    ({
      policies: Object.fromEntries(
        Object.entries(waits).map(([name, [primariesUnserved, primaryWaitVsOracle]]) => [
          name,
          { primariesUnserved, primaryWaitVsOracle, auxiliaryTokensServed: 1 },
        ]),
      ),
    }) as unknown as Parameters<typeof bestRival>[0]

  test('the best rival serves most, then soonest; ours and the oracle are none', () => {
    const result = policies({
      rightofway: [0, 0],
      oracle: [0, 0],
      headroom: [1, 1],
      'edict-gate': [0, 3],
      'naive-retry': [0, 2],
    })
    expect(bestRival(result)).toBe('naive-retry')
    expect(inOrder(result)).toEqual(['rightofway', 'naive-retry', 'oracle', 'headroom', 'edict-gate'])
    expect(bestRival(policies({ oracle: [0, 0] }))).toBeNull()
  })
})

describe('simulate', () => {
  test('prints a table for people, one line per policy', () => {
    const lines = simulate(request).split('\n')
    expect(lines[0]).toBe('made-conversation: 20 min of traffic, seed 20')
    expect(lines.slice(2).map((line) => line.split(' ')[0])).toEqual(policyNames)
  })

  test('prints JSON with exactly these names', () => {
    const names = 'rightofway,oracle'
    const result = JSON.parse(simulate({ ...request, policies: names, json: true })) as Record<
      string,
      unknown
    >
    expect(result).toEqual({
      scenario: 'made-conversation',
      seed: 20,
      durationMs: 1_200_000,
      clairvoyant: {
        meanPrimaryWaitMs: expect.any(Number),
        primariesUnserved: 0,
        acceptedTokens: expect.any(Number),
        auxiliaryTokens: expect.any(Number),
      },
      policies: { rightofway: expect.anything(), oracle: expect.anything() },
    })
    const number = expect.any(Number)
    expect((result['policies'] as Record<string, unknown>)['rightofway']).toEqual({
      primaryWaitMs: { p50: number, p95: number, max: number },
      primariesUnserved: number,
      auxiliaryTokensServed: number,
      auxiliaryMaxDeferralMs: number,
      refusals: { primary: number, auxiliary: number },
      meanPrimaryWaitMs: number,
      jain: number,
      jainOfEquals: null,
      refusalsPerAccepted: number,
      utilization: number,
      primaryWaitVsOracle: number,
      auxiliaryTokensVsOracle: number,
      primaryWaitVsClairvoyant: number,
      auxiliaryTokensVsClairvoyant: number,
      refusalsVsNaive: number,
    })
  })

  test('writes a report', () => {
    const reportPath = join(mkdtempSync(join(tmpdir(), 'arena-')), 'report.html')
    expect(simulate({ ...request, policies: 'oracle', reportPath })).toContain(`report: ${reportPath}`)
    expect(readFileSync(reportPath, 'utf8')).toMatch(/^<!doctype html>/)
    const nowhere = join(reportPath, 'x.html')
    expect(() => simulate({ ...request, policies: 'oracle', reportPath: nowhere })).toThrow(
      /report .*x\.html/,
    )
  })

  test('names a policy that it does not know, and a trace that is not there', () => {
    expect(() => simulate({ ...request, policies: 'oracle,magic' })).toThrow(InvalidInput)
    expect(() => simulate({ ...request, policies: 'oracle,magic' })).toThrow(
      /some of rightofway, .*got "magic"/,
    )
    const mooncake = scenarioPath.replace('made-conversation', 'mooncake-conversation')
    expect(() => simulate({ ...request, scenarioPath: mooncake })).toThrow(TraceMissing)
  })

  test('tells its progress, from nothing to all', () => {
    const shares: number[] = []
    const scenario = tinyScenario(
      [{ rule: 'spend-cap', afterRequests: 1 }],
      [callsAt('primary', 'p', [0], 1)],
    )
    runArena(scenario, { policies: ['oracle'], progress: (_policy, share) => shares.push(share) })
    expect(shares.at(-1)).toBe(1)
    expect(shares).toEqual(shares.toSorted((one, other) => one - other))
  })
})

/** The page up to its scripts. */
const dataOf = (page: string): string => page.slice(page.indexOf('<body>'), page.indexOf('<script>'))

describe('the report', () => {
  const scenario = {
    ...tinyScenario(
      [{ rule: 'token-bucket', inputTokensPerMinute: 600, states: 'retry-after' }],
      [callsAt('auxiliary', 'a', [0], 500, 100), callsAt('primary', 'p', [1_000], 300, 100)],
    ),
    name: '<b>"tiny" & small</b>',
  }

  test('needs nothing from anywhere', () => {
    const outcome = runArena(scenario)
    const page = reportPage(scenario, outcome)
    const own = page.replace(
      readFileSync(import.meta.resolve('uplot/dist/uPlot.iife.min.js').slice(7), 'utf8'),
      '',
    )
    expect(own.length).toBeLessThan(page.length - 40_000)
    expect(own).not.toMatch(/https?:|<link|<img|@import|url\(|src=/)
    expect(page).toContain('prefers-color-scheme:dark')
    expect(page).toContain('&lt;b&gt;&quot;tiny&quot; &amp; small&lt;/b&gt;')
    expect(page).not.toContain('<b>')
    // Waits over time, three plots of shares, and two for each policy.
    const front = policyNames.length - inOrder(outcome.result).slice(0, 4).length + 3
    expect(page.match(/ data-plot="/g)).toHaveLength(4 + 2 * (front + 1))
    expect(dataOf(page)).not.toMatch(/NaN|Infinity|undefined/)
    expect(page).toContain('<h2>Ours against the best rival, ')
  })

  test("tells each primary's story in the words of explain", () => {
    const page = reportPage(scenario, runArena(scenario))
    const [story] = page.match(/<details class="story" id="story-rightofway-adaptive-1-0-0">.*?<\/details>/s)!
    expect(story).toMatch(/00:00:01\.000 submitted: primary, interactive, for p, about 300 input tokens/)
    expect(story).toMatch(/the provider began to answer/)
  })

  test('keeps a name from ending its script', () => {
    const evil = { ...scenario, traffic: scenario.traffic, name: '</script><script>alert(1)' }
    expect(reportPage(evil, runArena(evil, { policies: ['oracle'] }))).not.toContain('<script>alert(1)')
  })

  test('survives a scenario in which nothing happens and nothing bounds', () => {
    const idle = tinyScenario([{ rule: 'overload', probability: 0 }], [callsAt('primary', 'p', [], 1)])
    expect(dataOf(reportPage(idle, runArena(idle)))).not.toMatch(/NaN|Infinity|undefined/)
  })

  test('shows tokens of a minute against what it could have held, and who waited', () => {
    const run = runPolicy(scenario, contenders['naive-retry'])
    const at = (atMs: number) => tokenSeries(run).find((point) => point.atMs === atMs)
    expect(at(0)).toEqual({ atMs: 0, usedTokens: 0, ceilingTokens: 600 })
    expect(at(10_000)).toEqual({ atMs: 10_000, usedTokens: 500, ceilingTokens: 700 })
    expect(at(30_000)).toEqual({ atMs: 30_000, usedTokens: 800, ceilingTokens: 900 })
    expect(at(61_000)?.usedTokens).toBe(300)
    expect(primarySpans(run, 120_000)).toMatchObject([
      { submittedAtMs: 1_000, acceptedAtMs: 20_000, endedAtMs: 22_000, refusals: 1, failed: false },
    ])
    const counts = auxiliaryCounts(run)
    expect(counts.find(({ atMs }) => atMs === 1_000)).toEqual({ atMs: 1_000, waiting: 0, inFlight: 1 })
    expect(counts.find(({ atMs }) => atMs === 2_000)).toEqual({ atMs: 2_000, waiting: 0, inFlight: 0 })
  })

  test.each([
    [null, '–'],
    [0, '0.0 s'],
    [12_345, '12.3 s'],
    [245_000, '4:05 min'],
  ])('says %s ms as %s', (ms, text) => {
    expect(duration(ms)).toBe(text)
  })

  test.each([
    [950, '950'],
    [41_400, '41k'],
    [999_600, '1.00M'],
    [2_345_678, '2.35M'],
  ])('says %s tokens as %s', (count, text) => {
    expect(tokens(count)).toBe(text)
  })
})
