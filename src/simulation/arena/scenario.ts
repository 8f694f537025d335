/**
 * A scenario: a provider with its limits, and the traffic that it gets. Every input of a run is here or in
 * the trace files that it names, so a scenario and its seed are a bug report.
 */
import { Schema } from 'effect'
import { InvalidInput, type Lane, laneOfClass, type PriorityClass } from '../../../machines/index.ts'
import { decodeOrThrow } from '../../../machines/model/invalid.ts'
import type { Latency, RuleSpec, Statement } from '../../emulator/index.ts'
import { type Answers, faithfulAnswers } from '../answers.ts'
import {
  type Arrival,
  besideRules,
  type Estimate,
  ruleMembers,
  ScenarioOutline,
  SingleRuleProviders,
  type Size,
  type StreamSchema,
} from './format.ts'

/** One source of calls. */
export interface Stream {
  readonly lane: Lane
  readonly priorityClass: PriorityClass
  readonly principal: string
  readonly arrival: Arrival
  /** Null when a trace gives it. */
  readonly inputTokens: Size | null
  readonly outputTokens: Size | null
  /** The clients' estimate of input tokens; null for the truth. */
  readonly estimate: Estimate | null
  /** How long a client waits for acceptance, ms; null for no limit. */
  readonly deadlineMs: number | null
}

export interface Scenario {
  readonly name: string
  readonly seed: number
  readonly durationMs: number
  readonly description: string
  readonly provider: {
    readonly rules: ReadonlyArray<RuleSpec>
    /** The detail of refusals for rules that state none; null for each rule's own default. */
    readonly states: Statement | null
    readonly concurrency: number | null
    readonly latency: Latency
    readonly answers: Answers
    /** Traffic on the same limits that no policy sees. */
    readonly strangers: ReadonlyArray<Stream>
  }
  readonly traffic: ReadonlyArray<Stream>
}

const defaultLatency: Latency = { firstTokenMs: 1_000, perOutputTokenMs: 20 }

/** Reads a scenario from JSON-like data. Throws `InvalidInput`: path, range and value of every fault. */
export const parseScenario = (input: unknown): Scenario => {
  const { name, seed, durationMs, description, provider, traffic } = decodeOrThrow(
    ScenarioOutline,
    'scenario',
    input,
  )
  return {
    name,
    seed,
    durationMs,
    description: description ?? '',
    provider: parseProvider(provider),
    traffic: traffic.map(withDefaults),
  }
}

const withDefaults = (stream: typeof StreamSchema.Type): Stream => {
  const { arrival, principal, inputTokens, outputTokens } = stream
  const lane =
    stream.lane ?? (stream.priorityClass === undefined ? 'primary' : laneOfClass(stream.priorityClass))
  return {
    lane,
    priorityClass: stream.priorityClass ?? (lane === 'primary' ? 'interactive' : 'background_ingestion'),
    principal: principal ?? 'principal',
    arrival,
    inputTokens: inputTokens ?? null,
    estimate: stream.estimate ?? null,
    deadlineMs: stream.deadlineMs ?? null,
    outputTokens: outputTokens ?? (arrival.kind === 'trace' ? null : 0),
  }
}

type Fields = Readonly<Record<string, unknown>>

/** The fields that every kind of provider has, decoded. */
interface Common {
  readonly concurrency?: number | null
  readonly latency?: Latency
  readonly states?: Statement
  readonly answers?: Partial<Answers>
  readonly strangers?: ReadonlyArray<typeof StreamSchema.Type>
}

const providerField = 'scenario.provider'

const parseProvider = (provider: Fields): Scenario['provider'] => {
  const { rule, ...beside } = provider
  const [common, rules] = Array.isArray(rule) ? parseComposite(rule, beside) : parseSingle(provider)
  const { states, concurrency, latency, answers, strangers = [] } = common
  return {
    rules,
    states: states ?? null,
    concurrency: concurrency ?? null,
    latency: latency ?? defaultLatency,
    answers: { ...faithfulAnswers, ...answers },
    strangers: strangers.map(withDefaults),
  }
}

type Parsed = readonly [Common, ReadonlyArray<RuleSpec>]

const parseSingle = (provider: Fields): Parsed => {
  const index = indexOfRule(provider['rule'], `${providerField}.rule`)
  const schema = SingleRuleProviders[index] as Schema.Decoder<Common>
  const decoded = decodeOrThrow(schema, providerField, provider)
  const rule = Object.fromEntries(Object.entries(decoded).filter(([key]) => !(key in besideRules)))
  return [decoded, [decodeRule(index, providerField, rule)]]
}

/** Reads a list of rules. A rule given only by name has its parameters beside the list. */
const parseComposite = (list: ReadonlyArray<unknown>, beside: Fields): Parsed => {
  if (list.length === 0) {
    throw new InvalidInput([{ field: `${providerField}.rule`, expected: 'at least one rule', got: '[]' }])
  }
  const taken = new Set<string>()
  const rules = list.map((member, index) => {
    const field = `${providerField}.rule.${index}`
    const spec = typeof member === 'string' ? { rule: member } : member
    const name: unknown = typeof spec === 'object' && spec !== null ? Reflect.get(spec, 'rule') : undefined
    const known = indexOfRule(name, `${field}.rule`)
    if (typeof member !== 'string') return decodeRule(known, field, spec)
    const { fields } = ruleMembers[known]!
    const parameters = Object.entries(beside).filter(([key]) => key in fields && key !== 'states')
    for (const [key] of parameters) taken.add(key)
    return decodeRule(known, field, { rule: name, ...Object.fromEntries(parameters) })
  })
  const rest = Object.fromEntries(Object.entries(beside).filter(([key]) => !taken.has(key)))
  return [decodeOrThrow(Schema.Struct(besideRules), providerField, rest), rules]
}

const decodeRule = (index: number, field: string, spec: unknown): RuleSpec =>
  decodeOrThrow(ruleMembers[index] as Schema.Decoder<RuleSpec>, field, spec)

const ruleNames: ReadonlyArray<unknown> = ruleMembers.map((member) => member.fields.rule.literal)

const indexOfRule = (name: unknown, field: string): number => {
  const index = ruleNames.indexOf(name)
  if (index >= 0) return index
  const got = JSON.stringify(name) ?? 'nothing'
  throw new InvalidInput([{ field, expected: `one of ${ruleNames.join(', ')}`, got }])
}
