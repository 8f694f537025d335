/** The scope of a request: which of its provider's limits it shares, and with which other requests. */
import { type Condition, checkedTemplate, conditionOf } from './condition.ts'
import { scopeRules } from './presets.ts'
import type { ScopeRule, ScopesInput } from './schema.ts'
import type { Subject } from './subject.ts'
import type { Template } from './template.ts'

export const scopeNameParts = ['credential', 'model', 'limit'] as const
export type ScopeNamePart = (typeof scopeNameParts)[number]

/** The parts of a scope's name; `rows` names the row that stated each part, null for a part that no row stated. */
export interface ScopeIdentity {
  readonly provider: string
  readonly credential: string
  readonly model: string
  readonly rows: Readonly<Record<ScopeNamePart, string | null>>
}

export interface ScopeNamer {
  readonly identify: (subject: Subject) => ScopeIdentity
}

interface Compiled {
  readonly name: string
  readonly condition: Condition
  readonly templates: Readonly<Record<ScopeNamePart, Template | null>>
}

/** `field` is where the table stands. Throws `InvalidInput` that names row and field. */
export const makeScopeNamer = (table: ScopesInput, field = 'config.scopes'): ScopeNamer => {
  const rows = table.flatMap((entry, index) => {
    const at = `${field}.${index}`
    if (!('preset' in entry)) return [compiled(entry, `scopes.${entry.name ?? index}`, at)]
    return scopeRules[entry.preset].map((rule) => compiled(rule, `${entry.preset}/${rule.name}`, at))
  })
  return {
    identify: (subject) => {
      const rowOf: Record<ScopeNamePart, string | null> = { credential: null, model: null, limit: null }
      const found: Record<ScopeNamePart, string | null> = { credential: null, model: null, limit: null }
      for (const { name, condition, templates } of rows) {
        if (!isWanted(templates, found) || !condition.fits(subject)) continue
        for (const part of scopeNameParts) {
          const value = found[part] === null ? (templates[part]?.(subject) ?? null) : null
          if (value === null) continue
          found[part] = value
          rowOf[part] = name
        }
      }
      const { request } = subject
      return {
        provider: request.upstream.provider,
        credential: (found.credential ?? subject.credential).replaceAll('/', ':'),
        model: (found.model ?? request.model) + (found.limit === null ? '' : `+${found.limit}`),
        rows: rowOf,
      }
    },
  }
}

const isWanted = (
  templates: Compiled['templates'],
  found: Readonly<Record<ScopeNamePart, string | null>>,
): boolean => scopeNameParts.some((part) => templates[part] !== null && found[part] === null)

const compiled = (rule: ScopeRule, name: string, field: string): Compiled => {
  const template = (part: ScopeNamePart): Template | null => {
    const text = rule[part]
    return text === undefined
      ? null
      : checkedTemplate(text, `${field}.${part}`, { sealed: part === 'credential' })
  }
  return {
    name,
    condition: conditionOf(rule.when, field),
    templates: { credential: template('credential'), model: template('model'), limit: template('limit') },
  }
}
