/** Which class, lane, principal, turn and id a request has that does not say so in headers of the gateway's own. */
import type { Lane, PriorityClass } from '../../../machines/index.ts'
import { type Condition, checkedTemplate, conditionOf } from './condition.ts'
import { classifyRules } from './presets.ts'
import type { ClassifyInput, ClassifyRule } from './schema.ts'
import type { Subject } from './subject.ts'
import type { Template } from './template.ts'

/** What the first row that fits says. Null: it says nothing of it. */
export interface Classified {
  readonly row: string
  readonly priorityClass: PriorityClass | null
  readonly lane: Lane | null
  readonly principal: string | null
  readonly turnId: string | null
  readonly id: string | null
}

export interface ClassifyRow {
  /** `claude-code/person`, `classify.2`. */
  readonly name: string
  readonly condition: Condition
}

export interface Classifier {
  /** Null where no row fits. */
  readonly classify: (subject: Subject) => Classified | null
  readonly rows: ReadonlyArray<ClassifyRow>
}

interface Compiled extends ClassifyRow {
  readonly rule: ClassifyRule
  readonly principal: Template | null
  readonly turn: Template | null
  readonly call: Template | null
}

/** `field` is where the table stands. Throws `InvalidInput` that names row and field. */
export const makeClassifier = (table: ClassifyInput, field = 'config.classify'): Classifier => {
  const rows = table.flatMap((entry, index) => {
    const at = `${field}.${index}`
    if (!('preset' in entry)) return [compiled(entry, `classify.${entry.name ?? index}`, at)]
    return classifyRules[entry.preset].map((rule) => compiled(rule, `${entry.preset}/${rule.name}`, at))
  })
  return {
    rows,
    classify: (subject) => {
      const row = rows.find(({ condition }) => condition.fits(subject))
      if (row === undefined) return null
      const { rule, principal, turn, call, name } = row
      return {
        row: name,
        priorityClass: rule.class ?? null,
        lane: rule.lane ?? null,
        principal: nameIn(principal, subject, 256),
        turnId: nameIn(turn, subject, 256),
        id: nameIn(call, subject, 240),
      }
    },
  }
}

const compiled = (rule: ClassifyRule, name: string, field: string): Compiled => {
  const template = (text: string | undefined, part: string): Template | null =>
    text === undefined ? null : checkedTemplate(text, `${field}.${part}`, { sealed: false })
  return {
    name,
    rule,
    condition: conditionOf(rule.when, field),
    principal: template(rule.principal, 'principal'),
    turn: template(rule.turn, 'turn'),
    call: template(rule.call, 'call'),
  }
}

/** A value that cannot be a name as it stands is one by its fingerprint. */
const nameIn = (template: Template | null, subject: Subject, longest: number): string | null => {
  const value = template?.(subject) ?? null
  if (value === null) return null
  return value.length <= longest && /^[\x20-\x7e]+$/.test(value) ? value : subject.sealed(value)
}
