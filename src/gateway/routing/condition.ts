/** Conditions of rows, compiled once. */
import { InvalidInput } from '../../../machines/index.ts'
import { matcherOf } from '../config/pattern.ts'
import type { When } from './schema.ts'
import type { Subject } from './subject.ts'
import {
  type Source,
  sourceOf,
  sourceSyntax,
  type Template,
  type TemplateOptions,
  templateOf,
} from './template.ts'

interface Check {
  /** As it is shown: `header:x-app`. */
  readonly place: string
  readonly pattern: string | null
  readonly source: Source
  readonly fits: (value: string | null) => boolean
}

export interface Condition {
  readonly fits: (subject: Subject) => boolean
  /** The first check that does not hold, in words; null when all hold. */
  readonly unmet: (subject: Subject) => string | null
  /** The condition in words. */
  readonly text: string
}

/** `field` names the row in errors. Throws `InvalidInput`. */
export const conditionOf = (when: When = {}, field = 'when'): Condition => {
  const { header = {}, body = {}, ...plain } = when
  const places: ReadonlyArray<readonly [string, string | null, string]> = [
    ...Object.entries(plain).map(([name, pattern]) => [name, pattern, name] as const),
    ...Object.entries(header).map(
      ([name, pattern]) => [`header:${name}`, pattern, `header.${name}`] as const,
    ),
    ...Object.entries(body).map(([name, pattern]) => [`body:${name}`, pattern, `body.${name}`] as const),
  ]
  const checks = places.map(([place, pattern, at]) => checkOf(place, pattern, `${field}.when.${at}`))
  const holds = ({ source, fits }: Check, subject: Subject): boolean => fits(source(subject))
  return {
    fits: (subject) => {
      for (const check of checks) if (!holds(check, subject)) return false
      return true
    },
    unmet: (subject) => {
      const check = checks.find((one) => !holds(one, subject))
      return check === undefined ? null : inWords(check)
    },
    text: checks.length === 0 ? 'anything' : checks.map(inWords).join(', '),
  }
}

const inWords = ({ place, pattern }: Check): string =>
  pattern === null ? `no ${place}` : `${place} = ${pattern}`

const checkOf = (place: string, pattern: string | null, field: string): Check => {
  const source = sourceOf(place)
  if (source === null) throw unknownPlace(field, place)
  const matches = pattern === null ? null : matcherOf(pattern.toLowerCase())
  return {
    place,
    pattern,
    source,
    fits: (value) => {
      if (matches === null || value === null) return matches === null && value === null
      return pattern === '*' || matches(value.toLowerCase())
    },
  }
}

const unknownPlace = (field: string, got: string): InvalidInput =>
  new InvalidInput([{ field, expected: `one of ${sourceSyntax}`, got: JSON.stringify(got) }])

/** Throws `InvalidInput` that names the field. */
export const checkedTemplate = (text: string, field: string, options: TemplateOptions): Template => {
  const template = templateOf(text, options)
  if (typeof template === 'function') return template
  throw unknownPlace(field, template.unknown)
}
