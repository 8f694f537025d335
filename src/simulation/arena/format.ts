/**
 * The format of a scenario file as a schema. The decoder and the published JSON Schema are made from it.
 * `parseScenario` checks the rules that involve several fields.
 */
import { Schema } from 'effect'
import { lanes, priorityClasses } from '../../../machines/index.ts'
import { finite, integer, maxSafe, text } from '../../../machines/model/invalid.ts'
import { RuleSpec } from '../../emulator/index.ts'

const dayMs = 24 * 60 * 60_000
/** Larger than every model's window. */
const maxCallTokens = 10_000_000
const callTokens = integer(0, maxCallTokens)

const Uniform = Schema.Tuple([callTokens, callTokens]).annotate({
  description: 'Fewest and most tokens, both possible',
})
const Lognormal = Schema.Union([
  Schema.Tuple([finite(0, maxCallTokens), finite(0, 10)]),
  Schema.Tuple([finite(0, maxCallTokens), finite(0, 10), integer(1, maxCallTokens)]),
]).annotate({
  description:
    'Median in tokens (at most 16: its natural logarithm, mu); standard deviation of the logarithm; the most that is drawn (default 1,000,000)',
})

/** Tokens of one call. */
const SizeSchema = Schema.Union([
  callTokens,
  Schema.Struct({
    uniform: Schema.optionalKey(Uniform),
    lognormal: Schema.optionalKey(Lognormal),
  }).check(
    Schema.makeFilter((size: { readonly uniform?: unknown; readonly lognormal?: unknown }) =>
      (size.uniform === undefined) !== (size.lognormal === undefined)
        ? undefined
        : 'expected one of uniform and lognormal',
    ),
    Schema.makeFilter((size: { readonly uniform?: readonly [number, number] }) =>
      size.uniform === undefined || size.uniform[0] <= size.uniform[1]
        ? undefined
        : { path: ['uniform'], issue: 'expected the lowest first' },
    ),
  ),
])
export type Size = typeof SizeSchema.Type

/** The least and the greatest value, both possible. */
const RangeOf = (bound: Schema.Codec<number>) =>
  Schema.Tuple([bound, bound]).check(
    Schema.makeFilter(([least, most]: readonly [number, number]) =>
      least <= most ? undefined : 'expected the lowest first',
    ),
  )

const ArrivalSchema = Schema.Union([
  Schema.Struct({ kind: Schema.Literal('closed-loop'), workers: integer(1, 10_000) }).annotate({
    description: 'So many workers, each of which asks again as soon as its call has ended',
  }),
  Schema.Struct({ kind: Schema.Literal('at'), atMs: Schema.Array(integer(0, 30 * dayMs)) }).annotate({
    description: 'At these times after the start, ms',
  }),
  Schema.Struct({ kind: Schema.Literal('poisson'), perMinute: finite(0, 100_000) }).annotate({
    description: 'By chance, at this mean rate',
  }),
  Schema.Struct({
    kind: Schema.Literal('on-off'),
    perMinute: finite(0, 100_000),
    onMs: integer(1, 30 * dayMs),
    offMs: integer(0, 30 * dayMs),
    startMs: Schema.optionalKey(
      integer(0, 30 * dayMs).annotate({ description: 'When it is first on, ms; default 0' }),
    ),
  }).annotate({ description: 'By chance at this mean rate while it is on, and not at all while it is off' }),
  Schema.Struct({
    kind: Schema.Literal('turns'),
    perMinute: finite(0, 100_000),
    rounds: RangeOf(integer(1, 1_000)),
    toolMs: RangeOf(integer(0, dayMs)),
    growthTokens: Schema.optionalKey(
      callTokens.annotate({
        description: 'Input tokens that each round has more than the one before; default 0',
      }),
    ),
  }).annotate({
    description:
      'Turns begin by chance at this mean rate; each is rounds of a call and a tool that runs for a time, drawn evenly',
  }),
  Schema.Struct({
    kind: Schema.Literal('trace'),
    file: text(1, 4_096).annotate({
      description: 'Absolute, or relative to the scenario file or to the folder of traces that is given',
    }),
    scale: Schema.optionalKey(
      finite(0.001, 100_000).annotate({ description: 'How many times as fast as recorded; default 1' }),
    ),
    minInputTokens: Schema.optionalKey(
      integer(0, maxCallTokens).annotate({ description: 'Only rows with at least so many input tokens' }),
    ),
    maxInputTokens: Schema.optionalKey(
      integer(0, maxCallTokens).annotate({ description: 'Only rows with at most so many input tokens' }),
    ),
    principals: Schema.optionalKey(
      integer(1, 1_000).annotate({
        description:
          'How many principals the rows are dealt to in turn, named <principal>-1 and so on; default 1',
      }),
    ),
  }).annotate({
    description: 'As recorded: a CSV file with the columns timestamp_ms,input_tokens,output_tokens',
  }),
])
export type Arrival = typeof ArrivalSchema.Type
export type TraceArrival = Extract<Arrival, { readonly kind: 'trace' }>

const EstimateSchema = Schema.Union([
  Schema.Literal('absent').annotate({ description: 'The client says nothing: 0 tokens' }),
  Schema.Struct({
    error: finite(0, 1).annotate({ description: 'Drawn evenly, off by at most this share of the truth' }),
  }),
  Schema.Struct({ factor: finite(0, 100).annotate({ description: 'Always this many times the truth' }) }),
])
export type Estimate = typeof EstimateSchema.Type

export const StreamSchema = Schema.Struct({
  lane: Schema.optionalKey(
    Schema.Literals(lanes).annotate({ description: 'Default: what the priority class says, else primary' }),
  ),
  priorityClass: Schema.optionalKey(
    Schema.Literals(priorityClasses).annotate({
      description: 'Default: interactive for primaries, background_ingestion for auxiliaries',
    }),
  ),
  principal: Schema.optionalKey(text(1, 200).annotate({ description: 'Who asks; default "principal"' })),
  arrival: ArrivalSchema,
  inputTokens: Schema.optionalKey(
    SizeSchema.annotate({ description: 'Tokens of each call; needed unless a trace says it' }),
  ),
  estimate: Schema.optionalKey(
    EstimateSchema.annotate({ description: 'What clients believe of input tokens; default the truth' }),
  ),
  deadlineMs: Schema.optionalKey(
    integer(1, 30 * dayMs).annotate({
      description: 'How long its clients wait for a call to be accepted before they give it up, ms',
    }),
  ),
  outputTokens: Schema.optionalKey(
    SizeSchema.annotate({ description: 'Tokens of each answer; default 0, or what the trace says' }),
  ),
}).check(
  Schema.makeFilter(
    (stream: { readonly arrival: { readonly kind: string }; readonly inputTokens?: unknown }) =>
      stream.inputTokens !== undefined || stream.arrival.kind === 'trace'
        ? undefined
        : { path: ['inputTokens'], issue: 'expected tokens per call: a number, uniform or lognormal' },
  ),
)

const States = Schema.Literals(['none', 'ceiling', 'retry-after']).annotate({
  description: 'What refusals state where a rule does not say; by default each rule has its own way',
})

const AnswersSchema = Schema.Struct({
  headersLagMs: Schema.optionalKey(
    integer(0, dayMs).annotate({ description: 'Age of the numbers in headers, ms; default 0' }),
  ),
  headersFactor: Schema.optionalKey(
    finite(0.01, 100).annotate({ description: 'What headers multiply limits and remainders by; default 1' }),
  ),
  kindBlind: Schema.optionalKey(
    Schema.Boolean.annotate({ description: 'Every refusal is a plain 429; default false' }),
  ),
  refusalsLateMs: Schema.optionalKey(
    integer(0, dayMs).annotate({ description: 'How long a refusal travels, ms; default 0' }),
  ),
})

/** The fields of a provider other than its rules. */
export const providerFields = {
  concurrency: Schema.optionalKey(
    Schema.NullOr(integer(1, 65_536)).annotate({
      description:
        'Calls in flight that it takes at most: it enforces this, and every policy is told. By default it has no such limit',
    }),
  ),
  answers: Schema.optionalKey(
    AnswersSchema.annotate({ description: 'Where what clients hear differs from what the provider does' }),
  ),
  strangers: Schema.optionalKey(
    Schema.Array(StreamSchema).annotate({
      description:
        'Traffic that shares the limits and that no policy sees: another tenant of the key, or another model of the organization. Its clients retry as the SDKs do',
    }),
  ),
  latency: Schema.optionalKey(
    Schema.Struct({ firstTokenMs: finite(0, dayMs), perOutputTokenMs: finite(0, dayMs) }).annotate({
      description: 'Default: 1,000 ms to the first token, then 20 ms for each',
    }),
  ),
}

/** One schema per rule, in the order of `RuleSpec`. */
export const ruleMembers = RuleSpec.members

/** A provider with one rule, whose parameters stand beside its name; in the order of `ruleMembers`. */
export const SingleRuleProviders = ruleMembers.map((member) =>
  Schema.Struct({ ...(member.fields as Schema.Struct.Fields), ...providerFields }),
)

/** The fields that may stand beside a list of rules. */
export const besideRules = { states: Schema.optionalKey(States), ...providerFields }

const CompositeProvider = Schema.Struct({ rule: Schema.Array(RuleSpec), ...besideRules })

const outline = {
  name: text(1, 200),
  seed: integer(0, maxSafe).annotate({ description: 'Of everything that is drawn' }),
  durationMs: integer(1_000, 30 * dayMs).annotate({ description: 'How long clients ask, ms' }),
  description: Schema.optionalKey(text(1, 2_000)),
  $schema: Schema.optionalKey(text(1, 4_096)),
  traffic: Schema.Array(StreamSchema),
}

/** The whole format, for the JSON Schema. */
export const ScenarioFormat = Schema.Struct({
  ...outline,
  provider: Schema.Union([...SingleRuleProviders, CompositeProvider]),
})

/** The format without the provider: its schema depends on the rule that it names. */
export const ScenarioOutline = Schema.Struct({
  ...outline,
  provider: Schema.Record(Schema.String, Schema.Unknown),
})
