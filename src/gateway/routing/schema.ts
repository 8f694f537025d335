/** Shape of the tables in the configuration. */
import { Schema } from 'effect'
import { lanes, priorityClasses } from '../../../machines/index.ts'
import { text } from '../../../machines/model/invalid.ts'
import { estimateRules, routeKinds } from './route-rows.ts'

const place = Schema.String.check(
  Schema.isPattern(/^(?:\{model\}|query:[^/]+|(?:[\w-]+:=)?\/.+)$/, {
    description: 'a place of the model: {model}, query:NAME, or a JSON pointer',
  }),
)

/** Rows of endpoints, before those that are shipped. */
export const RouteSchema = Schema.Struct({
  /** End of the path; `{model}` stands for the segment that names the model, `{any}` for another one. */
  path: Schema.String.check(Schema.isPattern(/^\/[^\s?#]{1,300}$/)),
  /** `generating` is admitted; `counting` and `bookkeeping` are passed on. */
  kind: Schema.Literals(routeKinds),
  /** Where the model stands, the first that has one. Default: `{model}` where the path has it, else `/model`. */
  model: Schema.optionalKey(Schema.Array(place)),
  /** How its input is estimated. Default `text`. */
  estimate: Schema.optionalKey(Schema.Literals(estimateRules)),
})

/** `*` in a pattern stands for anything; null means that the value must be absent. */
const pattern = Schema.NullOr(text(0, 300))

/** What must hold of a request; left out: anything. */
export const WhenSchema = Schema.Struct({
  /** The upstream's name. */
  upstream: Schema.optionalKey(text(1, 300)),
  /** The upstream's `provider`. */
  provider: Schema.optionalKey(text(1, 300)),
  /** The upstream's path, without its query. */
  path: Schema.optionalKey(text(1, 300)),
  model: Schema.optionalKey(text(1, 300)),
  /** Fingerprint of the client's key, as the names of scopes show it. */
  credential: Schema.optionalKey(text(1, 300)),
  /** Headers by name; behind a `#`, a JSON pointer into the JSON that the header holds. */
  header: Schema.optionalKey(Schema.Record(text(1, 300), pattern)),
  /** Values of the body by JSON pointer; behind a `#`, one into the JSON text that stands there. */
  body: Schema.optionalKey(Schema.Record(text(1, 300), pattern)),
})

export const classifyPresets = ['claude-code', 'codex', 'small-fast-model'] as const
export const scopePresets = ['model-families', 'accounts'] as const

const preset = <const Names extends ReadonlyArray<string>>(names: Names) =>
  Schema.Struct({ preset: Schema.Literals(names) })

const ClassifyRuleSchema = Schema.Struct({
  /** Shown where a row is explained. Default: its number. */
  name: Schema.optionalKey(text(1, 100)),
  when: Schema.optionalKey(WhenSchema),
  class: Schema.optionalKey(Schema.Literals(priorityClasses)),
  /** Default: the lane of the class. */
  lane: Schema.optionalKey(Schema.Literals(lanes)),
  /** Template of the call's principal. */
  principal: Schema.optionalKey(text(1, 300)),
  /** Template of the turn's id. */
  turn: Schema.optionalKey(text(1, 300)),
  /** Template of the call's id, the same for the same call sent again. */
  call: Schema.optionalKey(text(1, 300)),
})

/** The first row that fits counts. */
export const ClassifySchema = Schema.Array(Schema.Union([preset(classifyPresets), ClassifyRuleSchema]))

const ScopeRuleSchema = Schema.Struct({
  /** Shown where a row is explained. Default: its number. */
  name: Schema.optionalKey(text(1, 100)),
  when: Schema.optionalKey(WhenSchema),
  /** Template of the credential's part of the scope's name. Values of requests are put in as fingerprints. */
  credential: Schema.optionalKey(text(1, 200)),
  /** Template of the model's part. */
  model: Schema.optionalKey(text(1, 200)),
  /** Template of a limit of its own, beside the model's: it follows the model's part behind a `+`. */
  limit: Schema.optionalKey(text(1, 100)),
})

/** For each part of the name, the first row that fits and states the part counts. */
export const ScopesSchema = Schema.Array(Schema.Union([preset(scopePresets), ScopeRuleSchema]))

export type RouteInput = typeof RouteSchema.Type
export type When = typeof WhenSchema.Type
export type ClassifyRule = typeof ClassifyRuleSchema.Type
export type ClassifyInput = typeof ClassifySchema.Type
export type ScopeRule = typeof ScopeRuleSchema.Type
export type ScopesInput = typeof ScopesSchema.Type
