/**
 * A budget holds what the provider holds: for each known provider, against the emulator's own rule, and in a
 * table of what one call takes before it goes, as it goes, and when it has ended.
 */
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { defaultCharges, parsePolicy, type Usage } from '../../../machines/index.ts'
import { charge, type MeterName } from '../../../machines/limits/budget.ts'
import { neededFor, takenAtAdmission, takenInTheEnd } from '../../../machines/limits/charges.ts'
import type { Charges } from '../../../machines/model/charges.ts'
import { restorePolicy } from '../../../machines/model/policy-input.ts'
import { type KnownCharges, knownCharges } from '../../../src/config/charges.ts'
import { type Bucket, levelPartsAt } from '../../../src/emulator/rules/bucket.ts'
import { makeRule, type RuleSpec } from '../../../src/emulator/rules/spec.ts'
import { runs } from '../../properties/runs.ts'
import { blankCall, Story } from '../story.ts'

const limit = 40_000
const outputLimit = 9_000

const call = { ...blankCall, inputTokens: 1_000, outputTokens: 50, maxOutputTokens: 4_000 }
const { maxOutputTokens: _, ...silent } = call
const used: Usage = { inputTokens: 1_100, outputTokens: 60 }
/** Of 1,100 tokens of prompt, 900 came from a cache. */
const cached = { ...used, allInputTokens: 1_100, cacheReadTokens: 900 }

type Row = readonly [
  charges: 'default' | KnownCharges,
  needed: readonly [input: number, output: number],
  taken: readonly [input: number, output: number],
  silentTaken: number,
  completed: readonly [input: number, output: number],
  cachedInput: number,
  failedInput: number,
]

const rows: ReadonlyArray<Row> = [
  ['default', [1_000, 50], [1_000, 50], 1_000, [1_100, 60], 1_100, 0],
  ['anthropic', [1_000, 1], [1_000, 0], 1_000, [1_100, 60], 200, 0],
  ['openai', [4_000, 4_000], [4_000, 4_000], 1_000, [4_000, 4_000], 4_000, 4_000],
  ['azure', [5_000, 4_000], [5_000, 4_000], 1_050, [5_000, 4_000], 5_000, 5_000],
  ['bedrock', [5_000, 4_000], [5_000, 4_000], 1_050, [1_160, 60], 260, 0],
  ['bedrock-claude', [5_000, 4_000], [5_000, 4_000], 1_250, [1_400, 300], 500, 0],
  ['gemini', [1_000, 1], [1_000, 0], 1_000, [1_100, 60], 1_100, 1_000],
  ['cerebras', [5_000, 4_000], [5_000, 4_000], 17_384, [5_000, 4_000], 5_000, 0],
]

const chargesNamed = (name: 'default' | KnownCharges): Charges =>
  name === 'default' ? defaultCharges : knownCharges[name]

describe('of 1,000 tokens of prompt, 50 of output expected and 4,000 allowed', () => {
  it.each(rows)('%s needs %j, takes %j (%i when it states no maximum), in the end %j', (...row) => {
    const [name, needed, taken, silentTaken, completed, cachedInput, failedInput] = row
    const charges = chargesNamed(name)
    const held = takenAtAdmission(charges, call)
    const tokens = (cost: { inputTokens: number; outputTokens: number }) => [
      cost.inputTokens,
      cost.outputTokens,
    ]
    const end = (outcome: 'completed' | 'failed', usage?: Usage) =>
      takenInTheEnd(charges, call, {
        outcome,
        stage: outcome === 'completed' ? 'accepted' : 'dispatched',
        usage,
        taken: held,
      })
    expect(tokens(neededFor(charges, call))).toEqual(needed)
    expect(tokens(held)).toEqual(taken)
    expect(takenAtAdmission(charges, silent).inputTokens).toBe(silentTaken)
    expect(tokens(end('completed', used))).toEqual(completed)
    expect(end('completed', cached).inputTokens).toBe(cachedInput)
    expect(end('failed').inputTokens).toBe(failedInput)
    expect(end('failed').requests).toBe(charges.failures ? 1 : 0)
  })

  it('charged at completion takes a request only, and its tokens when it ends, however it fails', () => {
    const charges: Charges = { ...defaultCharges, at: 'completion', output: 'none', failures: true }
    const taken = takenAtAdmission(charges, call)
    expect(taken).toEqual({ requests: 1, inputTokens: 0, outputTokens: 0 })
    expect(neededFor(charges, call).inputTokens).toBe(1_000)
    const end = (outcome: 'completed' | 'failed', stage: 'accepted' | 'dispatched', usage?: Usage) =>
      takenInTheEnd(charges, call, { outcome, stage, usage, taken }).inputTokens
    expect([end('completed', 'accepted', used), end('failed', 'dispatched')]).toEqual([1_100, 1_000])
  })

  it('never keeps anything of what the provider refused, or never saw', () => {
    for (const name of Object.keys(knownCharges) as KnownCharges[]) {
      const charges = knownCharges[name]
      const taken = takenAtAdmission(charges, call)
      const refused = takenInTheEnd(charges, call, { outcome: 'throttled', stage: 'dispatched', taken })
      const unsent = takenInTheEnd(charges, call, { outcome: 'cancelled', stage: 'admitted', taken })
      expect([refused, unsent]).toEqual(Array(2).fill({ requests: 0, inputTokens: 0, outputTokens: 0 }))
    }
  })
})

describe('a policy', () => {
  it('of an older version charges as it did then', () => {
    const { charges, ...older } = restorePolicy({}, 'policy')
    expect(charges).toEqual(defaultCharges)
    expect(restorePolicy(older, 'policy').charges).toEqual(defaultCharges)
  })

  it.each([
    [{ output: 'max_tokens' }, /policy\.charges\.output/],
    [{ outputWeight: -1 }, /policy\.charges\.outputWeight.*\[0, 100\]/],
    [{ defaultMaxOutputTokens: 1.5 }, /policy\.charges\.defaultMaxOutputTokens/],
    [{ weight: 2 }, /policy\.charges\.weight/],
  ])('refuses %j by field, range and value', (charges, message) => {
    expect(() => parsePolicy({ charges: charges as Partial<Charges> })).toThrow(message)
  })
})

/** The rule of each provider, as the emulator has it: independent arithmetic in whole parts of a token. */
const judges: Readonly<Record<KnownCharges, ReadonlyArray<readonly [MeterName, RuleSpec]>>> = {
  anthropic: [
    ['inputTokensPerMinute', { rule: 'token-bucket', inputTokensPerMinute: limit }],
    ['outputTokensPerMinute', { rule: 'output-tokens-per-minute', outputTokensPerMinute: outputLimit }],
  ],
  openai: [
    [
      'inputTokensPerMinute',
      {
        rule: 'reserved-tokens',
        tokensPerMinute: limit,
        counts: 'larger',
        settles: 'none',
        failuresCharge: true,
      },
    ],
  ],
  azure: [
    [
      'inputTokensPerMinute',
      { rule: 'reserved-tokens', tokensPerMinute: limit, settles: 'none', failuresCharge: true },
    ],
  ],
  bedrock: [['inputTokensPerMinute', { rule: 'reserved-tokens', tokensPerMinute: limit }]],
  'bedrock-claude': [
    ['inputTokensPerMinute', { rule: 'reserved-tokens', tokensPerMinute: limit, outputWeight: 5 }],
  ],
  gemini: [
    ['inputTokensPerMinute', { rule: 'token-bucket', inputTokensPerMinute: limit, failuresCharge: true }],
  ],
  cerebras: [
    [
      'inputTokensPerMinute',
      { rule: 'reserved-tokens', tokensPerMinute: limit, settles: 'none', defaultMaxTokens: 16_384 },
    ],
  ],
}
/** Providers whose cached tokens do not count. */
const cacheIsFree: ReadonlySet<KnownCharges> = new Set(['anthropic', 'bedrock', 'bedrock-claude'])

/** One meter at the provider. */
class Judge {
  readonly name: MeterName
  readonly #rule
  readonly #limit: number
  state: unknown

  constructor([name, spec]: readonly [MeterName, RuleSpec]) {
    this.name = name
    this.#rule = makeRule(spec)
    this.#limit = name.startsWith('output') ? outputLimit : limit
    this.state = this.#rule.initial(1)
  }

  level(atMs: number): number {
    const shape = { perMinute: this.#limit, capacity: this.#limit }
    return levelPartsAt(shape, this.state as Bucket, atMs) / 60_000
  }

  /** Whether the provider takes the call. */
  take(sent: Sent, atMs: number): boolean {
    const { inputTokens, maxOutputTokens = null } = sent
    const answer = this.#rule.check(this.state, { atMs, inputTokens, maxOutputTokens })
    this.state = answer.state
    return answer.accepted
  }

  end(
    sent: Sent,
    atMs: number,
    actual: { inputTokens: number; outputTokens: number },
    failed: boolean,
  ): void {
    const { inputTokens, maxOutputTokens = null } = sent
    const { inputTokens: actualInputTokens, outputTokens } = actual
    this.state = this.#rule.complete(this.state, {
      atMs,
      inputTokens,
      actualInputTokens,
      outputTokens,
      maxOutputTokens,
      failed,
    })
  }
}

interface Sent {
  readonly id: string
  readonly inputTokens: number
  readonly maxOutputTokens?: number
}

const size = fc.integer({ min: 0, max: 9_000 })
const anyStep = fc.oneof(
  {
    weight: 3,
    arbitrary: fc.record({
      kind: fc.constant('submit' as const),
      inputTokens: size,
      maxOutputTokens: fc.option(fc.integer({ min: 1, max: 12_000 }), { nil: undefined }),
    }),
  },
  {
    weight: 3,
    arbitrary: fc.record({
      kind: fc.constantFrom('complete' as const, 'break' as const),
      which: fc.nat(),
      more: fc.integer({ min: -3_000, max: 3_000 }),
      cacheReadTokens: fc.integer({ min: 0, max: 4_000 }),
      outputTokens: fc.integer({ min: 0, max: 2_500 }),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({ kind: fc.constant('fail' as const), which: fc.nat() }),
  },
  { weight: 1, arbitrary: fc.record({ kind: fc.constantFrom('restart' as const, 'unsent' as const) }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('pass' as const), ms: fc.nat({ max: 90_000 }) }) },
)
type Step = typeof anyStep extends fc.Arbitrary<infer A> ? A : never
type Ending = Extract<Step, { readonly which: number }>

class Ledger {
  readonly #name: KnownCharges
  readonly judges: ReadonlyArray<Judge>
  #story: Story
  readonly #sent = new Map<string, Sent>()
  readonly #calls = new Map<string, Sent>()
  /** The next permit goes back unused. */
  #withholdsNext = false

  constructor(name: KnownCharges) {
    this.#name = name
    this.judges = judges[name].map((judge) => new Judge(judge))
    this.#story = new Story({
      capacity: 1_000,
      reserve: 0,
      inFlight: 'tolerate',
      drainIntervalMs: 0,
      charges: knownCharges[name],
      limits: {
        inputTokensPerMinute: limit,
        ...(name === 'anthropic' ? { outputTokensPerMinute: outputLimit } : {}),
      },
    })
  }

  /** Sends what was granted since, at this very moment, and holds the meters against the provider's. */
  look(): void {
    const story = this.#story
    const next = (): string | undefined => story.running.find((id) => !this.#sent.has(id))
    // A permit that goes back unused lets another call go.
    for (let id = next(); id !== undefined; id = next()) {
      const call = this.#calls.get(id)!
      if (this.#withholdsNext) {
        this.#withholdsNext = false
        story.withdraw(id)
        continue
      }
      // What the budget lets go, no limit of the provider refuses: the two hold the same.
      expect(this.judges.map((judge) => judge.take(call, story.at))).not.toContain(false)
      story.dispatch(id)
      this.#sent.set(id, call)
    }
    const { budget } = story.context
    for (const judge of this.judges) {
      const own = charge(budget, { requests: 0, inputTokens: 0, outputTokens: 0 }, story.at)[judge.name]!
      expect(own.level).toBeCloseTo(judge.level(story.at), 3)
    }
  }

  play(step: Step): void {
    const story = this.#story
    if (step.kind === 'submit') {
      const id = `call-${this.#calls.size}`
      const { inputTokens, maxOutputTokens } = step
      const call = { id, inputTokens, ...(maxOutputTokens === undefined ? {} : { maxOutputTokens }) }
      this.#calls.set(id, call)
      story.auxiliary(id, call)
    } else if (step.kind === 'pass') this.#pass(step.ms)
    else if (step.kind === 'restart') this.#story = story.restarted()
    else if ('which' in step) this.#end(step)
    else this.#withholdsNext = true
    this.look()
  }

  /** Advances to each moment at which the scope wakes, so that calls are sent as soon as they are granted. */
  #pass(ms: number): void {
    const story = this.#story
    const endMs = story.at + ms
    while (story.at < endMs) {
      const next = Math.min(story.wakesInMs ?? Number.POSITIVE_INFINITY, endMs - story.at)
      story.pass(Math.max(1, next))
      this.look()
    }
  }

  #end(step: Ending): void {
    const story = this.#story
    const sent = [...this.#sent.values()][step.which % Math.max(1, this.#sent.size)]
    if (sent === undefined) return
    this.#sent.delete(sent.id)
    if (step.kind === 'fail') {
      for (const judge of this.judges)
        judge.end(sent, story.at, { inputTokens: sent.inputTokens, outputTokens: 0 }, true)
      story.settle(sent.id, 'failed')
      return
    }
    const allInputTokens = Math.max(0, sent.inputTokens + step.more)
    const cacheReadTokens = Math.min(step.cacheReadTokens, allInputTokens)
    const free = cacheIsFree.has(this.#name)
    const { outputTokens } = step
    const inputTokens = free ? allInputTokens - cacheReadTokens : allInputTokens
    for (const judge of this.judges) judge.end(sent, story.at, { inputTokens, outputTokens }, false)
    story.accept(sent.id)
    const usage = { inputTokens, outputTokens, allInputTokens, cacheReadTokens }
    story.settle(sent.id, step.kind === 'complete' ? 'completed' : 'failed', usage)
  }

  finish(): void {
    for (let more = 0; this.#story.waiting.length > 0 || this.#sent.size > 0; more += 1) {
      if (more > 500) throw new Error(`still waiting after ${more} rounds: ${this.#story.waiting}`)
      if (this.#sent.size === 0) this.#pass(60_000)
      for (const _ of [...this.#sent])
        this.play({ kind: 'complete', which: 0, more: 0, cacheReadTokens: 0, outputTokens: 1 })
    }
  }
}

describe.each(Object.keys(judges) as KnownCharges[])('under the charges of %s', (name) => {
  it('the budget holds what the provider holds, whatever happens, and it refuses nothing that was let go', () => {
    fc.assert(
      fc.property(fc.array(anyStep, { maxLength: 60 }), (steps) => {
        const ledger = new Ledger(name)
        for (const step of steps) ledger.play(step)
        ledger.finish()
        for (const judge of ledger.judges) expect(judge.level(0)).toBeLessThanOrEqual(limit)
      }),
      { numRuns: runs(150) },
    )
  })
})

it('what an unsent call gives back is there before its place, and the budget, go to the next: a full one stays full', () => {
  const story = new Story({ capacity: 1, limits: { inputTokensPerMinute: limit } })
  story.auxiliary('parent', { inputTokens: 0 })
  story.auxiliary('first', { inputTokens: 100, parentId: 'parent' })
  story.auxiliary('second', { inputTokens: 1_000, parentId: 'parent' })
  // In a minute the meter is full again but for what `first` has.
  story.pass(60_000)
  expect(story.settle('first', 'cancelled')).toEqual(['release second: nested'])
  expect(story.context.budget.inputTokensPerMinute?.level).toBe(limit - 1_000)
})

it('a policy that charges otherwise from now on settles what is in flight by its new words, once', () => {
  const story = new Story({ charges: knownCharges.azure, limits: { inputTokensPerMinute: limit } })
  story.auxiliary('a', { inputTokens: 1_000, maxOutputTokens: 4_000 })
  const level = () => story.context.budget.inputTokensPerMinute!.level
  expect(level()).toBe(limit - 5_000)
  story.change({ charges: knownCharges.bedrock })
  story.accept('a')
  story.settle('a', 'completed', { inputTokens: 1_000, outputTokens: 10 })
  expect(level()).toBe(limit - 1_010)
})

it('three one-word calls under 30,000 a minute, each taking 16,384: one a half minute, and none is refused', () => {
  const story = new Story({
    charges: knownCharges.cerebras,
    limits: { inputTokensPerMinute: 30_000 },
    capacity: 8,
    reserve: 0,
    inFlight: 'tolerate',
    drainIntervalMs: 0,
  })
  for (const id of ['a', 'b', 'c']) story.auxiliary(id, { inputTokens: 1 })
  expect(story.running).toEqual(['a'])
  expect(story.reasonOf('b')).toBe('budget')
  story.accept('a')
  story.settle('a', 'completed', { inputTokens: 1, outputTokens: 1 })
  expect(story.running).toEqual([])
  story.pass(5_539)
  expect(story.running).toEqual([])
  story.pass(1)
  expect(story.running).toEqual(['b'])
})

it('a request of 1,000,000 tokens that fails leaves a small primary waiting until the minute has paid for it', () => {
  const story = new Story({ charges: knownCharges.gemini, limits: { inputTokensPerMinute: 1_000_000 } })
  story.primary('large', { inputTokens: 1_000_000 })
  story.dispatch('large')
  story.settle('large', 'failed')
  story.primary('small', { inputTokens: 5_000 })
  expect(story.running).toEqual([])
  story.pass(300)
  expect(story.running).toEqual(['small'])
})
