/** How dispatches end for the scope, by what came of them. */
import type { Evidence, Usage } from '../../../machines/index.ts'
import type { Settlement } from '../../host/permit.ts'
import type { BodyReading } from '../answers/body-reading.ts'

/** An upstream that cannot be reached, in the words of admission: the class backs off a little. */
const awayEvidence: Evidence = {
  kind: 'overloaded',
  scope: 'model',
  retryAfterMs: null,
  retryable: true,
  facts: {},
}

/** Nothing of the request has left this machine. */
export const neverSent: Settlement = { outcome: 'throttled', evidence: awayEvidence, cause: 'never-sent' }

export const said = (usage: Usage | null | undefined): { readonly usage?: Usage } =>
  usage === null || usage === undefined ? {} : { usage }

/** An answer that has been passed on to its last byte. */
export const passed = ({ usage, evidence, truncated }: BodyReading): Settlement => {
  if (evidence !== null) {
    const outcome = evidence.kind === 'not-capacity' ? 'failed' : 'throttled'
    return { outcome, evidence, ...said(usage) }
  }
  if (truncated) return { outcome: 'failed', cause: 'truncated', ...said(usage) }
  return { outcome: 'completed', ...said(usage) }
}
