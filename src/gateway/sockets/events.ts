/** What the messages on a WebSocket of OpenAI's wire say: which asks for a response, and which ends one. */
import type { Evidence, Usage } from '../../../machines/index.ts'
import { classify, readUsage } from '../../evidence/index.ts'
import { coreUsage } from '../answers/body-reading.ts'
import { textMember } from '../identity/members.ts'

/** Paths under which a WebSocket carries calls. `path` is the upstream's, without its query. */
export const carriesCalls = (path: string): boolean => /\/(?:responses|realtime)$/.test(path)

export const typeOf = (message: Buffer): string => textMember(message, 'type') ?? ''

type Json = Readonly<Record<string, unknown>>

const isObject = (value: unknown): value is Json =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/** The message as an object; empty when it is none. */
export const parsed = (message: Buffer): Json => {
  try {
    const value: unknown = JSON.parse(message.toString('utf8'))
    return isObject(value) ? value : {}
  } catch {
    return {}
  }
}

const textIn = (holder: unknown, name: string): string | null => {
  const value = isObject(holder) ? holder[name] : null
  return typeof value === 'string' && value !== '' ? value : null
}

/** The model that a message names for itself; null when it leaves it to the session. */
export const modelIn = (message: Json): string | null =>
  textIn(message, 'model') ?? textIn(message['response'], 'model') ?? textIn(message['session'], 'model')

export const responseIdIn = (message: Json): string | null =>
  textIn(message['response'], 'id') ?? textIn(message, 'response_id')

/** Events after which nothing more of a response comes. */
const endings: ReadonlySet<string> = new Set([
  'response.completed',
  'response.done',
  'response.failed',
  'response.incomplete',
  'response.cancelled',
])

export const endsResponse = (type: string): boolean => endings.has(type)

/** The id of the client's event that an error answers; null when it names none. */
export const causeOf = (message: Json): string | null => textIn(message['error'], 'event_id')

export interface ResponseEnd {
  readonly usage: Usage | null
  /** What an error says; null where there is none. */
  readonly evidence: Evidence | null
}

/** How a response ended, by its last event. */
export const endOf = (provider: string, message: Json, receivedAt: number): ResponseEnd => ({
  usage: coreUsage(readUsage(provider, message)),
  evidence: evidenceIn(provider, message, receivedAt),
})

const evidenceIn = (provider: string, message: Json, receivedAt: number): Evidence | null => {
  const response = isObject(message['response']) ? message['response'] : {}
  const details = isObject(response['status_details']) ? response['status_details'] : {}
  const error = message['error'] ?? response['error'] ?? details['error']
  if (error === undefined || error === null) return null
  const stated = message['status'] ?? message['status_code']
  const headers = isObject(message['headers']) ? message['headers'] : {}
  return classify({
    provider,
    status: typeof stated === 'number' ? stated : 200,
    headers: headers as Readonly<Record<string, string>>,
    body: { type: 'error', error },
    receivedAt,
  })
}
