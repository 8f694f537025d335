import { Schema, SchemaIssue } from 'effect'

/** One thing wrong with an input: which field, what it should be, and what it was. */
export interface Problem {
  /** Dotted path from the named root, for example `policy.weights.residence-a`. */
  readonly field: string
  /** What is allowed, with its range. */
  readonly expected: string
  /** The value as given, shortened. */
  readonly got: string
}

/** Input that was refused at the door. `problems` lists every fault found; nothing was changed. */
export class InvalidInput extends Error {
  readonly _tag = 'InvalidInput'
  readonly problems: ReadonlyArray<Problem>
  constructor(problems: ReadonlyArray<Problem>) {
    super(problems.map(({ field, expected, got }) => `${field}: expected ${expected}, got ${got}`).join('; '))
    this.name = 'InvalidInput'
    this.problems = problems
  }
}

/** A value as an error shows it, shortened. */
export const shown = (value: unknown): string => {
  if (value === undefined) return 'nothing'
  const text =
    typeof value === 'number' || typeof value === 'bigint'
      ? String(value)
      : (JSON.stringify(value) ?? typeof value)
  return text.length > 80 ? `${text.slice(0, 77)}...` : text
}

const valueAt = (root: unknown, path: ReadonlyArray<PropertyKey>): unknown =>
  path.reduce<unknown>(
    (value, key) =>
      typeof value === 'object' && value !== null ? (value as Record<PropertyKey, unknown>)[key] : undefined,
    root,
  )

const expectation = (message: string): string =>
  message === 'Missing key'
    ? 'a value'
    : message.replace(/^expected /i, '').replace('no excess property', 'only known fields')

const format = SchemaIssue.makeFormatterStandardSchemaV1()

/**
 * Decodes `input`, or throws `InvalidInput` that names field, value and range of every fault.
 * `name` is what the reader calls the whole thing (`policy`, `call`, `config`).
 */
export const decodeOrThrow = <A>(schema: Schema.Decoder<A>, name: string, input: unknown): A => {
  const result = Schema.decodeUnknownResult(schema)(input, { errors: 'all', onExcessProperty: 'error' })
  if (result._tag === 'Success') return result.success
  const { issues } = format(SchemaIssue.isIssue(result.failure) ? result.failure : result.failure.issue)
  throw new InvalidInput(
    issues.map((issue) => {
      const path = (issue.path ?? []).map((part) => (typeof part === 'object' ? part.key : part))
      return {
        field: [name, ...path.map(String)].join('.'),
        expected: expectation(issue.message),
        got: shown(valueAt(input, path)),
      }
    }),
  )
}

/** Largest integer that JSON and arithmetic keep exactly. */
export const maxSafe = Number.MAX_SAFE_INTEGER

/** An integer in `[minimum, maximum]`. */
export const integer = (minimum: number, maximum: number) =>
  Schema.Int.check(
    Schema.isBetween({ minimum, maximum }, { expected: `an integer in [${minimum}, ${maximum}]` }),
  )

/** A finite number in `[minimum, maximum]`. */
export const finite = (minimum: number, maximum: number) =>
  Schema.Finite.check(
    Schema.isBetween({ minimum, maximum }, { expected: `a number in [${minimum}, ${maximum}]` }),
  )

/** A string of `minimum` to `maximum` characters without control characters. */
export const text = (minimum: number, maximum: number) =>
  Schema.String.check(
    Schema.makeFilter((value: string) =>
      value.length >= minimum && value.length <= maximum && !/\p{Cc}/u.test(value)
        ? undefined
        : `expected ${minimum} to ${maximum} printable characters`,
    ),
  )
