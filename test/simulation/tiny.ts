/** Scenarios small enough to follow by hand. */
import type { RuleSpec } from '../../src/emulator/index.ts'
import { parseScenario, type Scenario, type Stream } from '../../src/simulation/arena/scenario.ts'

export const tinyScenario = (
  rule: ReadonlyArray<RuleSpec>,
  traffic: ReadonlyArray<Partial<Stream>>,
  more: { readonly durationMs?: number; readonly seed?: number; readonly concurrency?: number } = {},
): Scenario =>
  parseScenario({
    name: 'tiny',
    seed: more.seed ?? 1,
    durationMs: more.durationMs ?? 120_000,
    provider: {
      rule,
      latency: { firstTokenMs: 1_000, perOutputTokenMs: 10 },
      ...(more.concurrency === undefined ? {} : { concurrency: more.concurrency }),
    },
    traffic,
  })

/** One stream with calls at the given times. */
export const callsAt = (
  lane: 'primary' | 'auxiliary',
  principal: string,
  atMs: ReadonlyArray<number>,
  inputTokens: number,
  outputTokens = 0,
): Partial<Stream> => ({ lane, principal, arrival: { kind: 'at', atMs }, inputTokens, outputTokens })

export const workers = (
  principal: string,
  count: number,
  inputTokens: Stream['inputTokens'],
  outputTokens: Stream['outputTokens'] = 0,
): Partial<Stream> => ({
  lane: 'auxiliary',
  principal,
  arrival: { kind: 'closed-loop', workers: count },
  inputTokens,
  outputTokens,
})
