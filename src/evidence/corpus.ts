/** Classifies pasted text or a file: one answer, one bare body, or a list of cases. */
import type { Evidence } from '../../machines/model/evidence.ts'
import { isObject, type ProviderAnswer } from './answer.ts'
import { classify } from './classify.ts'
import type { HeaderBag } from './header-map.ts'

/** One result, in the field names of a case file. */
export interface ClassifiedCase extends Evidence {
  /** The case's own id; null when it has none. */
  readonly id: string | null
  readonly provider: string
}

/**
 * Classifies parsed JSON, or raw text. A list of objects with a `status` or a `body` is a list of cases;
 * anything else is one answer: an object with `status`, `headers` and `body`, or the body alone.
 */
export const classifyFile = (input: unknown): ReadonlyArray<ClassifiedCase> => {
  if (Array.isArray(input) && input.length > 0 && input.every(isCase)) return input.map(classifyCase)
  if (isObject(input) && Array.isArray(input['cases']) && input['cases'].every(isCase)) {
    return input['cases'].map(classifyCase)
  }
  if (isCase(input)) return [classifyCase(input)]
  if (typeof input === 'string') return [classifyCase(pastedAnswer(input))]
  return [classifyCase({ body: input })]
}

const isCase = (value: unknown): value is Readonly<Record<string, unknown>> => {
  return (
    isObject(value) && 'body' in value && ('status' in value || 'headers' in value || 'provider' in value)
  )
}

const classifyCase = (stated: Readonly<Record<string, unknown>>): ClassifiedCase => {
  const { id, provider, status, headers, body, receivedAt } = stated
  const answer: ProviderAnswer = {
    provider: typeof provider === 'string' ? provider : '',
    status: typeof status === 'number' ? status : 0,
    headers: isObject(headers) ? (headers as HeaderBag) : {},
    body,
    receivedAt: typeof receivedAt === 'number' || typeof receivedAt === 'string' ? receivedAt : undefined,
  }
  const { kind, retryAfterMs, scope, retryable, facts } = classify(answer)
  return {
    id: typeof id === 'string' ? id : null,
    provider: answer.provider,
    kind,
    retryAfterMs,
    scope,
    retryable,
    facts,
  }
}

/** A paste may begin with the status line and headers that `curl -i` prints. */
const pastedAnswer = (text: string): Readonly<Record<string, unknown>> => {
  const status = /^\s*HTTP\/[\d.]{1,4} (\d{3})\b/.exec(text.slice(0, 64))?.[1]
  if (status === undefined) return { body: text }
  const [top = '', ...rest] = text.trimStart().split(/\r?\n\r?\n/)
  const fields = top
    .split(/\r?\n/)
    .slice(1, 200)
    .map((line) => /^([\w-]{1,80}):\s*(.*)$/.exec(line))
  const headers = Object.fromEntries(
    fields.flatMap((field) => (field === null ? [] : [[field[1], field[2]]])),
  )
  return { status: Number(status), headers, body: rest.join('\n\n') }
}
