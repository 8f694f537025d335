/** What the operator may choose: decoded from JSON, every fault named with field, value and range. */
import { Schema } from 'effect'
import { type Charges, InvalidInput, type PolicyInput, parsePolicy } from '../../../machines/index.ts'
import { decodeOrThrow, integer, text } from '../../../machines/model/invalid.ts'
import { chargesOf, type KnownCharges } from '../../config/charges.ts'
import { decodeRules, InvalidRules, type RuleSpec } from '../../emulator/index.ts'
import { wires } from '../answers/wire.ts'
import type { TlsFiles } from '../entrance/tls.ts'
import { defaultClassify, defaultScopes } from '../routing/presets.ts'
import { makeRouting } from '../routing/routing.ts'
import {
  type ClassifyInput,
  ClassifySchema,
  type RouteInput,
  RouteSchema,
  type ScopesInput,
  ScopesSchema,
} from '../routing/schema.ts'
import { builtInUpstreams, reservedNames, type Upstream } from './upstreams.ts'

const maxDurationMs = 24 * 60 * 60_000

const segment = Schema.String.check(
  Schema.makeFilter((value: string) =>
    /^[a-z0-9][a-z0-9._-]{0,39}$/.test(value) && !reservedNames.includes(value)
      ? undefined
      : `expected 1 to 40 of a-z, 0-9, ".", "_", "-", and none of ${reservedNames.join(', ')}`,
  ),
)

const isBaseUrl = (value: string): boolean => {
  if (!URL.canParse(value)) return false
  const { protocol, username, password, search, hash } = new URL(value)
  return /^https?:$/.test(protocol) && username + password + search + hash === ''
}

const baseUrl = Schema.String.check(
  Schema.makeFilter((value: string) =>
    isBaseUrl(value)
      ? undefined
      : 'expected an http or https URL without credentials, query and fragment (keys come with each request)',
  ),
)

const UpstreamSchema = Schema.Struct({
  /** First segment of the path that it is served under. `anthropic` and `openai` replace the built-in ones. */
  name: segment,
  baseUrl,
  /** How it speaks. Default `openai`: most servers do. */
  wire: Schema.optionalKey(Schema.Literals(wires)),
  /** First part of its scopes' names; upstreams that share one share their scopes. Default: its name. */
  provider: Schema.optionalKey(segment),
  /** Whether the class is passed on, as `x-resource-priority` and as the body's `priority` (vLLM). Default false. */
  honoursPriority: Schema.optionalKey(Schema.Boolean),
  /**
   * Whether chat streams are asked for their usage (`stream_options.include_usage`) where the client did not. What the
   * answer says for it is taken out again. Default false: then such streams teach nothing.
   */
  asksForUsage: Schema.optionalKey(Schema.Boolean),
  /** How it charges calls: a known provider's name, or fields of a policy's `charges`. Default: by what callers say. */
  charges: Schema.optionalKey(Schema.Unknown),
})

const EmulatorSchema = Schema.Struct({
  /** Limits, in the words of `rightofway/emulator`. */
  rules: Schema.optionalKey(Schema.Unknown),
  firstTokenMs: Schema.optionalKey(integer(0, maxDurationMs)),
  perOutputTokenMs: Schema.optionalKey(integer(0, maxDurationMs)),
})

const ConfigSchema = Schema.Struct({
  host: Schema.optionalKey(text(1, 253)),
  port: Schema.optionalKey(integer(0, 65_535)),
  /** Host names, without port, that requests may be sent to beside those of this machine. Default none. */
  allowedHosts: Schema.optionalKey(Schema.Array(text(1, 253))),
  /** Origins whose pages may ask, such as `https://app.example`. Default none but our own. */
  allowedOrigins: Schema.optionalKey(Schema.Array(text(1, 300))),
  /** Lets every client that can reach the address use the gateway, without tokens. Default false. */
  insecure: Schema.optionalKey(Schema.Boolean),
  /** Serves HTTPS with these PEM files, which are read again when they change. Default none: HTTP. */
  tls: Schema.optionalKey(Schema.Struct({ cert: text(1, 4_096), key: text(1, 4_096) })),
  /** Path of the journal, or `:memory:`. */
  journal: Schema.optionalKey(text(1, 4_096)),
  /** How much history the journal keeps: what a checkpoint covers goes after `keepMs`, or sooner above `keepBytes`. */
  retention: Schema.optionalKey(
    Schema.Struct({
      /** Default 24 h. */
      keepMs: Schema.optionalKey(integer(0, 10 * 365 * maxDurationMs)),
      /** Size of the journal's file in use. Default: no bound. */
      keepBytes: Schema.optionalKey(integer(1024 * 1024, 2 ** 53 - 1)),
    }),
  ),
  /** Largest body of one call. Default 64 MiB. */
  bodyLimitBytes: Schema.optionalKey(integer(1_024, 1024 * 1024 * 1024)),
  /** Bodies of all calls that wait or run. Default 1 GiB; beyond it calls are answered 503. */
  heldBodiesLimitBytes: Schema.optionalKey(integer(1_024, 1024 * 1024 * 1024 * 1024)),
  /** Scopes, one for each provider, key and model. Default 10,000; for another the least recently used is forgotten. */
  scopesLimit: Schema.optionalKey(integer(1, 1_000_000)),
  /** How long a client may stay connected without reading its answer. Default 2 minutes; then the answer is broken off. */
  writeStallMs: Schema.optionalKey(integer(1_000, maxDurationMs)),
  /** How often the client of a waiting call hears that it is still wanted, so that proxies keep its connection. Default 15 s; 0 for never. */
  interimAnswersMs: Schema.optionalKey(integer(0, maxDurationMs)),
  /**
   * How it hears that. Default `informational`: a 102, to clients of HTTP/1.1 that no proxy has marked. `comments`: a
   * comment of the event stream, to calls with `stream: true`; their head is 200 from then on, and a refusal is an
   * error event.
   */
  keepAlive: Schema.optionalKey(Schema.Literals(['informational', 'comments'])),
  /** How long streams may go on after the gateway was told to close. */
  closeGraceMs: Schema.optionalKey(integer(0, maxDurationMs)),
  upstreams: Schema.optionalKey(Schema.Array(UpstreamSchema)),
  /** Policies by scope name, `*` for anything: `anthropic/*`. Of those that fit, the longest counts. */
  policies: Schema.optionalKey(Schema.Record(text(1, 600), Schema.Unknown)),
  /** Endpoints that are not known, or known otherwise: these rows come before those that are shipped. */
  routes: Schema.optionalKey(Schema.Array(RouteSchema)),
  /**
   * Class, lane, principal, turn and id of requests that have no header of ours. The first row that fits counts. Default: the
   * presets `claude-code` and `codex`.
   */
  classify: Schema.optionalKey(ClassifySchema),
  /** What shares one limit. Default: the presets `model-families` and `accounts`. */
  scopes: Schema.optionalKey(ScopesSchema),
  emulator: Schema.optionalKey(EmulatorSchema),
})

export interface EmulatorConfig {
  readonly rules: ReadonlyArray<RuleSpec>
  readonly firstTokenMs: number
  readonly perOutputTokenMs: number
}

/** In which form the client of a waiting call hears that it is still wanted. */
export type KeepAlive = 'informational' | 'comments'

export interface GatewayConfig {
  readonly host: string
  /** 0 takes a free one. */
  readonly port: number
  readonly journal: string
  readonly retention: { readonly keepMs?: number; readonly keepBytes?: number }
  readonly allowedHosts: ReadonlyArray<string>
  readonly allowedOrigins: ReadonlyArray<string>
  readonly insecure: boolean
  readonly tls: TlsFiles | null
  readonly bodyLimitBytes: number
  readonly heldBodiesLimitBytes: number
  readonly scopesLimit: number
  readonly writeStallMs: number
  readonly interimAnswersMs: number
  readonly keepAlive: KeepAlive
  readonly closeGraceMs: number
  /** Built-in ones included; without the emulator, whose address is known when it runs. */
  readonly upstreams: ReadonlyArray<Upstream>
  readonly policies: Readonly<Record<string, PolicyInput>>
  readonly routes: ReadonlyArray<RouteInput>
  readonly classify: ClassifyInput
  readonly scopes: ScopesInput
  readonly emulator: EmulatorConfig
}

export const defaultJournal = '.rightofway/lanes.db'

const defaultRules: ReadonlyArray<RuleSpec> = [
  { rule: 'token-bucket', inputTokensPerMinute: 200_000 },
  { rule: 'concurrency', maxConcurrent: 16 },
]

/** Fills in defaults and checks the whole. Throws `InvalidInput`. */
export const parseConfig = (input: unknown = {}): GatewayConfig => {
  const config = decodeOrThrow(ConfigSchema, 'config', input)
  // Its rows are compiled here for their faults alone.
  makeRouting(config)
  return {
    host: config.host ?? '127.0.0.1',
    port: config.port ?? 4_517,
    journal: config.journal ?? defaultJournal,
    retention: config.retention ?? {},
    allowedHosts: config.allowedHosts ?? [],
    allowedOrigins: config.allowedOrigins ?? [],
    insecure: config.insecure ?? false,
    tls: config.tls ?? null,
    bodyLimitBytes: config.bodyLimitBytes ?? 64 * 1024 * 1024,
    heldBodiesLimitBytes: config.heldBodiesLimitBytes ?? 1024 * 1024 * 1024,
    scopesLimit: config.scopesLimit ?? 10_000,
    writeStallMs: config.writeStallMs ?? 2 * 60_000,
    interimAnswersMs: config.interimAnswersMs ?? 15_000,
    keepAlive: config.keepAlive ?? 'informational',
    closeGraceMs: config.closeGraceMs ?? 10_000,
    upstreams: upstreamsOf(config.upstreams ?? []),
    policies: policiesOf(config.policies ?? {}),
    routes: config.routes ?? [],
    classify: config.classify ?? defaultClassify,
    scopes: config.scopes ?? defaultScopes,
    emulator: {
      rules: config.emulator?.rules === undefined ? defaultRules : rulesOf(config.emulator.rules),
      firstTokenMs: config.emulator?.firstTokenMs ?? 150,
      perOutputTokenMs: config.emulator?.perOutputTokenMs ?? 15,
    },
  }
}

const upstreamsOf = (given: ReadonlyArray<typeof UpstreamSchema.Type>): ReadonlyArray<Upstream> => {
  const upstreams = new Map(builtInUpstreams.map((upstream) => [upstream.name, upstream]))
  const names = new Set<string>()
  for (const [
    index,
    { name, wire, provider, honoursPriority, charges, asksForUsage, ...rest },
  ] of given.entries()) {
    if (names.has(name)) {
      throw new InvalidInput([
        { field: `config.upstreams.${index}.name`, expected: 'a name of its own', got: JSON.stringify(name) },
      ])
    }
    names.add(name)
    upstreams.set(name, {
      name,
      baseUrl: rest.baseUrl.replace(/\/+$/, ''),
      wire: wire ?? (name === 'anthropic' ? 'anthropic' : 'openai'),
      provider: provider ?? name,
      honoursPriority: honoursPriority ?? false,
      ...(asksForUsage === undefined ? {} : { asksForUsage }),
      charges: charges === undefined ? null : upstreamCharges(charges, `config.upstreams.${index}.charges`),
    })
  }
  return [...upstreams.values()]
}

const upstreamCharges = (given: unknown, field: string): Charges => {
  try {
    if (typeof given === 'string') return chargesOf(given as KnownCharges)
    return parsePolicy({ charges: given as Partial<Charges> }).charges
  } catch (error) {
    if (!(error instanceof InvalidInput)) throw error
    const named = (at: string) => at.replace(/^(?:policy\.)?charges/, field)
    throw new InvalidInput(error.problems.map((problem) => ({ ...problem, field: named(problem.field) })))
  }
}

/** Each is checked as it stands, so that no request can meet a policy that cannot be. */
const policiesOf = (given: Readonly<Record<string, unknown>>): Readonly<Record<string, PolicyInput>> => {
  for (const [pattern, policy] of Object.entries(given)) {
    try {
      parsePolicy(policy as PolicyInput)
    } catch (error) {
      if (!(error instanceof InvalidInput)) throw error
      const named = (field: string) => field.replace(/^policy/, `config.policies["${pattern}"]`)
      throw new InvalidInput(error.problems.map((problem) => ({ ...problem, field: named(problem.field) })))
    }
  }
  return given as Readonly<Record<string, PolicyInput>>
}

const rulesOf = (given: unknown): ReadonlyArray<RuleSpec> => {
  try {
    return decodeRules(given)
  } catch (error) {
    if (!(error instanceof InvalidRules)) throw error
    const got = JSON.stringify(given) ?? 'nothing'
    throw new InvalidInput([
      {
        field: 'config.emulator.rules',
        expected: `rules (${error.message.replaceAll(/\s+/g, ' ')})`,
        got: got.length > 80 ? `${got.slice(0, 77)}...` : got,
      },
    ])
  }
}
