/** The work of `config check`, apart from its flags. */
import { readFileSync } from 'node:fs'
import { PolicyBook } from '../gateway/config/policies.ts'
import { emulatorUpstreams } from '../gateway/config/upstreams.ts'
import { keptSecret } from '../gateway/identity/credential.ts'
import { type ExplainedCall, explainRequest, readRequest } from '../gateway/routing/explain.ts'
import { readConfig } from './configuration.ts'

export interface CheckRequest {
  readonly configPath: string | null
  /** Path of a file with a request; `-` reads standard input. */
  readonly explain: string | null
  readonly json: boolean
}

/** Throws with the field, where the configuration or the request is faulty. */
export const checked = ({ configPath, explain, json }: CheckRequest): string => {
  const config = readConfig({ flags: {}, configPath })
  if (explain === null) {
    const upstreams = [...config.upstreams, ...emulatorUpstreams('http://127.0.0.1')]
    const { warnings } = new PolicyBook(config.policies, upstreams)
    if (json) return JSON.stringify({ ok: true, warnings })
    return ['The configuration is sound.', ...warnings.map((warning) => `warning: ${warning}`)].join('\n')
  }
  const request = readRequest(readFileSync(explain === '-' ? 0 : explain))
  const secret = keptSecret(config.journal)
  const explained = explainRequest(config, request, secret ?? '')
  if (json) return JSON.stringify({ ...explained, hasSecret: secret !== null })
  const { upstream, route, call } = explained
  const lines = [
    `upstream   ${upstream}`,
    `route      ${route.kind}: row ${route.path} (${route.wire})`,
    ...(call === null ? ['           It is passed on without admission.'] : callLines(call)),
  ]
  if (call !== null && secret === null)
    lines.push(
      `           There is no journal at ${config.journal} yet: the fingerprint in this name is not the one that it will have.`,
    )
  return lines.join('\n')
}

const callLines = (call: ExplainedCall): ReadonlyArray<string> => {
  const { scopeRows } = call
  const rows = Object.entries(scopeRows)
    .filter(([, row]) => row !== null)
    .map(([part, row]) => `${part} by ${row}`)
  const classified =
    call.classifiedBy === null ? 'no row fits' : `row ${call.classifiedBy}, because ${call.because}`
  return [
    `model      ${call.model} (${call.modelFrom === null ? 'the request names none' : `from ${call.modelFrom}`})`,
    `classify   ${classified}`,
    ...call.passed.map(({ row, unmet }) => `           not ${row}: needs ${unmet}`),
    `call       ${call.priorityClass}, ${call.lane}, principal ${call.principal}, turn ${call.turnId ?? 'none'}`,
    `scope      ${call.scope} (${rows.length === 0 ? 'no row fits' : rows.join(', ')})`,
  ]
}
