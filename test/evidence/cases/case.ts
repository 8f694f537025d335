/** Refusals in made-up numbers and names, one per relevant shape, with the evidence that each must give. */
import type { EvidenceFacts, EvidenceKind, EvidenceScope } from '../../../machines/model/evidence.ts'
import type { ProviderAnswer } from '../../../src/evidence/index.ts'

export interface EvidenceCase extends ProviderAnswer {
  readonly says: string
  readonly kind: EvidenceKind
  readonly scope: EvidenceScope
  readonly retryable: boolean
  readonly retryAfterMs: number | null
  readonly facts?: EvidenceFacts
}

export type Reading = readonly [EvidenceKind, EvidenceScope, boolean, number | null, EvidenceFacts?]
type Answer = Partial<Omit<ProviderAnswer, 'provider' | 'status'>>

/** `anthropic 429` and the body come first, because a reader compares these. */
export const given = (says: string, from: string, answer: Answer, reading: Reading): EvidenceCase => {
  const [provider = '', status = '0'] = from.split(' ')
  const [kind, scope, retryable, retryAfterMs, facts] = reading
  const expected = { kind, scope, retryable, retryAfterMs, ...(facts === undefined ? {} : { facts }) }
  return { says, provider, status: Number(status), headers: {}, body: '', ...answer, ...expected }
}

export const noon = '2031-03-05T12:00:00.000Z'
export const noonMs = Date.parse(noon)

export const claude = (type: string, message: string): unknown => ({
  type: 'error',
  error: { type, message },
})
export const claudeLimit = (dimension: string): unknown =>
  claude(
    'rate_limit_error',
    `This request would exceed your organization's rate limit of ${dimension} (org: org-a, model: claude-test-9). Please reduce the prompt length or the maximum tokens requested.`,
  )
export const oai = (message: string, code: string | null = null, type: string | null = null): unknown => ({
  error: { message, type, param: null, code },
})
export const google = (
  message: string,
  details: ReadonlyArray<unknown> = [],
  status = 'RESOURCE_EXHAUSTED',
): unknown => ({
  error: { code: 429, message, status, details },
})
export const violations = (...list: ReadonlyArray<Record<string, unknown>>): unknown => ({
  '@type': 'type.googleapis.com/google.rpc.QuotaFailure',
  violations: list,
})
export const sse = (...events: ReadonlyArray<readonly [string, unknown]>): string =>
  events
    .map(([name, data]) => `${name === '' ? '' : `event: ${name}\n`}data: ${JSON.stringify(data)}\n\n`)
    .join('')
