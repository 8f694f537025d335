/** Requests to the host that serves this page; every address is relative to the page. */
import type { EntriesAnswer, ExplainAnswer, Frame, HistoryAnswer, ScopesAnswer } from '../../../protocol.ts'

/** The host refused a request; holds its answer. */
export class Refused extends Error {
  readonly status: number
  constructor(status: number, message: string) {
    super(message)
    this.name = 'Refused'
    this.status = status
  }
}

const answerOf = async <A>(response: Response): Promise<A> => {
  const body = (await response.json()) as A & { readonly error?: string }
  if (!response.ok) throw new Refused(response.status, body.error ?? `status ${response.status}`)
  return body
}

type Query = Readonly<Record<string, string | number | null>>

const ask = async <A>(name: string, query: Query = {}): Promise<A> => {
  const given = Object.entries(query).flatMap(([key, value]) =>
    value === null ? [] : [[key, String(value)]],
  )
  return answerOf(await fetch(`./api/${name}?${new URLSearchParams(given)}`))
}

export const askScopes = (at: number | null): Promise<ScopesAnswer> => ask('scopes', { at })

export const askHistory = (scope: string, limit: number, before: number | null): Promise<HistoryAnswer> =>
  ask('history', { scope, limit, before })

export const askEntries = (scope: string, after: number, limit: number): Promise<EntriesAnswer> =>
  ask('entries', { scope, after, limit })

export const askExplain = (call: string, at: number | null): Promise<ExplainAnswer> =>
  ask('explain', { call, at })

export const act = async (
  action: 'release-wait' | 'promote' | 'policy',
  token: string,
  body: object,
): Promise<void> => {
  const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' }
  await answerOf(
    await fetch(`./api/actions/${action}`, { method: 'POST', headers, body: JSON.stringify(body) }),
  )
}

export interface FeedListener {
  readonly frame: (frame: Frame) => void
  /** The feed was lost. It reconnects by itself and then sends a `hello`. */
  readonly lost: () => void
}

/** A browser gives a feed up for good when it is answered with an error, such as too many viewers. */
const reopenMs = 3_000

export const openFeed = ({ frame, lost }: FeedListener): void => {
  const source = new EventSource('./api/feed')
  source.onmessage = ({ data }) => frame(JSON.parse(data as string) as Frame)
  source.onerror = () => {
    lost()
    if (source.readyState === EventSource.CLOSED) setTimeout(() => openFeed({ frame, lost }), reopenMs)
  }
}
