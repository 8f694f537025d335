/** The work of `release`, apart from its flags. The operator is the person who can read the installation's secret. */
import { resolve } from 'node:path'
import { operatorHeader, operatorToken } from '../gateway/entrance/operator.ts'
import { keptSecret } from '../gateway/identity/credential.ts'
import { CliFailure } from './failure.ts'

export interface Released {
  readonly released: string
  /** The wait that was ended; null when there was none. */
  readonly wait: { readonly kind: string; readonly untilMs: number } | null
}

const elsewhere =
  "name the journal of that gateway with --journal or --config, or run this where 'serve' runs"

export const release = async (url: string, journal: string, scope: string): Promise<Released> => {
  const secret = keptSecret(journal)
  if (secret === null) {
    const message = `no secret stands beside the journal ${resolve(journal)}, so no gateway serves it; ${elsewhere}`
    throw new CliFailure({ message })
  }
  const answer = await fetch(new URL('/lanes/release', url), {
    method: 'POST',
    headers: { 'content-type': 'application/json', [operatorHeader]: operatorToken(secret) },
    body: JSON.stringify({ scope }),
  }).catch(() => {
    throw new CliFailure({ message: `no gateway answers at ${url}; name another with --url` })
  })
  const said = (await answer.json().catch(() => ({}))) as { readonly detail?: string } & Partial<Released>
  if (answer.status === 403) {
    const message = `the gateway at ${url} has another journal than ${resolve(journal)}; ${elsewhere}`
    throw new CliFailure({ message })
  }
  if (!answer.ok) throw new CliFailure({ message: said.detail ?? `the gateway answered ${answer.status}` })
  return { released: scope, wait: said.wait ?? null }
}

export const sentence = ({ released, wait }: Released): string =>
  wait === null
    ? `scope ${released} was not asked to wait; its backoffs are ended`
    : `scope ${released} no longer waits for ${wait.kind} (it would have until ${new Date(wait.untilMs).toISOString()})`
