/** The plan of one seed: its scopes, with their providers and clients, and its faults. Plain data. */
import type { Lane, PolicyInput, PriorityClass } from '../../../machines/index.ts'
import type { Latency } from '../../emulator/provider.ts'
import type { RuleSpec } from '../../emulator/rules/spec.ts'
import { type Draw, drawFrom } from './draw.ts'

export interface ClientPlan {
  readonly name: string
  readonly principal: string
  readonly lane: Lane
  readonly priorityClass: PriorityClass
  /** Calls that it makes, one after another. */
  readonly calls: number
  /** Longest pause between two of its calls, ms. */
  readonly thinkMs: number
  readonly largestInputTokens: number
  /** The client takes permits itself and reports its dispatches itself. */
  readonly admits: boolean
  /** The client seldom asks for its call again after a restart. */
  readonly forgetful: boolean
}

export interface ScopePlan {
  readonly key: { readonly provider: string; readonly credential: string; readonly model: string }
  readonly policy: PolicyInput
  readonly rules: ReadonlyArray<RuleSpec>
  readonly latency: Latency
  /** Share of dispatches that an overloaded provider refuses, [0, 1]. */
  readonly overloads: number
  /** Share of dispatches whose connection breaks, [0, 1]. */
  readonly disconnects: number
  readonly clients: ReadonlyArray<ClientPlan>
  /** No provider limit, overload, quota or foreground: the bounds on waiting are numbers then. */
  readonly calm: boolean
}

/** Times are milliseconds from the start. */
export type FaultPlan =
  /** The process dies: at once, or in the middle of a later entry or acknowledgement, given by its number. */
  | {
      readonly kind: 'kill'
      readonly atMs: number
      readonly within: 'nothing' | 'append' | 'durable'
      readonly nth: number
    }
  /** The disk says EIO; the host is started again a while later. */
  | { readonly kind: 'eio'; readonly atMs: number }
  | { readonly kind: 'slow-sync'; readonly atMs: number; readonly forMs: number }
  /** The host is closed in order and opened again. */
  | { readonly kind: 'close'; readonly atMs: number; readonly graceMs: number }
  /** The machine's clock is set, or the machine slept. */
  | { readonly kind: 'jump'; readonly atMs: number; readonly byMs: number }

export interface Plan {
  readonly seed: number
  readonly scopes: ReadonlyArray<ScopePlan>
  readonly faults: ReadonlyArray<FaultPlan>
  /** The disk acknowledges at multiples of this. */
  readonly syncEveryMs: number
  readonly keepEntries: number
  /** Scopes share only the disk, so each must decide as if it were alone. */
  readonly isolated: boolean
}

/** All faults fall within this time; afterwards the calls under way can end. */
export const faultyMs = 240_000

export const planOf = (seed: number): Plan => {
  const draw = drawFrom(seed, 'plan')
  const isolated = draw.odds(0.25)
  const calm = draw.odds(0.3)
  const scopes = Array.from({ length: isolated ? 2 : draw.whole(1, 3) }, (_, index) =>
    scopeOf(drawFrom(seed, `scope ${index}`), index, calm, isolated),
  )
  return {
    seed,
    scopes,
    faults: faultsOf(drawFrom(seed, 'faults'), { calm, isolated }),
    syncEveryMs: draw.of([1, 1, 3, 20]),
    keepEntries: draw.of([10, 200, Number.POSITIVE_INFINITY]),
    isolated,
  }
}

const scopeOf = (draw: Draw, index: number, calm: boolean, isolated: boolean): ScopePlan => {
  const provider = isolated ? `provider-${index}` : 'anthropic'
  const auxiliaries = draw.whole(2, 6)
  const primaries = draw.whole(1, 2)
  return {
    key: { provider, credential: 'k1', model: `model-${index}` },
    policy: policyOf(draw, calm),
    rules: calm ? [] : rulesOf(draw),
    latency: { firstTokenMs: draw.of([0, 200, 2_000]), perOutputTokenMs: draw.of([1, 10, 40]) },
    overloads: calm ? 0 : draw.of([0, 0.05, 0.3]),
    disconnects: draw.of([0, 0.05, 0.2]),
    clients: [
      ...Array.from({ length: auxiliaries }, (_, at) => auxiliaryOf(draw, `a${at}`)),
      ...Array.from({ length: primaries }, (_, at) => primaryOf(draw, `p${at}`)),
    ],
    calm,
  }
}

const auxiliaryOf = (draw: Draw, name: string): ClientPlan => ({
  name,
  principal: draw.of(['ann', 'bob', 'cleo']),
  lane: 'auxiliary',
  priorityClass: 'background_ingestion',
  calls: draw.whole(2, 8),
  thinkMs: draw.of([0, 500, 20_000]),
  largestInputTokens: draw.of([500, 60_000]),
  admits: draw.odds(0.3),
  forgetful: draw.odds(0.2),
})

const primaryOf = (draw: Draw, name: string): ClientPlan => ({
  ...auxiliaryOf(draw, name),
  lane: 'primary',
  priorityClass: draw.of(['interactive', 'orchestration', 'hydration']),
  thinkMs: draw.of([500, 5_000, 30_000]),
  largestInputTokens: draw.of([500, 180_000]),
})

const policyOf = (draw: Draw, calm: boolean): PolicyInput => ({
  capacity: draw.whole(1, 6),
  inFlight: draw.of(['settle', 'cancel', 'tolerate']),
  afterPatience: draw.of(['proceed', 'cancel']),
  patienceMs: draw.of([0, 1, 2_000, 30_000]),
  graceMs: draw.of([0, 100, 5_000]),
  quietWindowMs: draw.of([0, 10_000, 60_000]),
  strategy: draw.of(['quiet', 'holdSteady', 'stepUp', 'backfill', 'adaptive']),
  hold: draw.of(['whileWaiting', 'untilAccepted', 'untilSettled']),
  toleratedInFlight: draw.of([0, 0, 1]),
  // In a calm scope a turn fits any call. Otherwise the bound on waiting would depend on the sizes of the
  // calls.
  quantumTokens: calm ? 64_000 : draw.of([1, 30_000, 64_000]),
  drainIntervalMs: draw.of([0, 1_000]),
  // With a deferral shorter than patience plus grace, several quanta may come before one primary.
  maxDeferralMs: calm ? 60_000 : draw.of([1_000, 10_000, 60_000]),
  lingerMs: draw.of([0, 5_000]),
  maxAttempts: draw.of([2, 60]),
  unclaimedExpiryMs: draw.of([5_000, 600_000]),
  settledRetention: draw.of([16, 4_096]),
  unknownAfterRestart: draw.of(['report', 'report', 'dispatchAgain']),
  ...(calm || draw.odds(0.6)
    ? {}
    : { principalQuota: draw.whole(1, 2), limits: { inputTokensPerMinute: draw.of([200_000, 1_000_000]) } }),
})

const rulesOf = (draw: Draw): ReadonlyArray<RuleSpec> => {
  const rules: ReadonlyArray<RuleSpec> = [
    { rule: 'token-bucket', inputTokensPerMinute: draw.of([200_000, 600_000]) },
    { rule: 'concurrency', maxConcurrent: draw.whole(1, 6) },
    { rule: 'requests-per-minute', requestsPerMinute: draw.whole(10, 60) },
  ]
  return rules.filter(() => draw.odds(0.5))
}

const faultsOf = (
  draw: Draw,
  { calm, isolated }: { calm: boolean; isolated: boolean },
): ReadonlyArray<FaultPlan> => {
  const kinds: ReadonlyArray<FaultPlan['kind']> = [
    'kill',
    'kill',
    'kill',
    'eio',
    'slow-sync',
    'close',
    'jump',
  ]
  const faults = Array.from({ length: draw.whole(0, 5) }, () =>
    faultOf(draw, draw.of(kinds), draw.whole(0, faultyMs)),
  )
  // All scopes share the machine's clock and the process, so isolated scopes get no faults of these.
  const spared: ReadonlyArray<FaultPlan['kind']> = isolated ? ['jump', 'close'] : calm ? ['jump'] : []
  return faults
    .filter(({ kind }) => !spared.includes(kind))
    .map((fault) => (isolated && fault.kind === 'kill' ? { ...fault, within: 'nothing' as const } : fault))
    .sort((one, other) => one.atMs - other.atMs)
}

const faultOf = (draw: Draw, kind: FaultPlan['kind'], atMs: number): FaultPlan => {
  switch (kind) {
    case 'kill':
      return { kind, atMs, within: draw.of(['nothing', 'append', 'durable']), nth: draw.whole(1, 6) }
    case 'eio':
      return { kind, atMs }
    case 'slow-sync':
      return { kind, atMs, forMs: draw.of([500, 10_000]) }
    case 'close':
      return { kind, atMs, graceMs: draw.of([0, 1_000, 30_000]) }
    case 'jump':
      return { kind, atMs, byMs: draw.of([-3_600_000, -50, 1_000, 600_000, 86_400_000]) }
  }
}
