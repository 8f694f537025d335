/** The page's place is its link: the view, the scope, the moment, the call and the filter of decisions. */
import { type LogFilter, lanes, noFilter, verdicts } from './log-filter.ts'

export const views = ['scopes', 'statechart', 'lanes', 'budget', 'decisions', 'actors'] as const
export type View = (typeof views)[number]

export interface Place {
  readonly view: View
  /** Null: the first scope. */
  readonly scope: string | null
  /** The journal position that is shown; null follows the newest entry. */
  readonly position: number | null
  /** The call whose history is shown; null for none. */
  readonly call: string | null
  /** Which decisions are listed. */
  readonly filter: LogFilter
}

export const home: Place = {
  view: 'statechart',
  scope: null,
  position: null,
  call: null,
  filter: noFilter,
}

const isView = (text: string | null): text is View => views.includes(text as View)

/** Reads a URL's hash. A faulty part counts as missing. */
export const parsePlace = (hash: string): Place => {
  const parts = new URLSearchParams(hash.replace(/^#/, ''))
  const view = parts.get('view')
  const position = Number(parts.get('at') ?? Number.NaN)
  return {
    view: isView(view) ? view : home.view,
    scope: parts.get('scope') || null,
    position: Number.isSafeInteger(position) && position >= 0 ? position : null,
    call: parts.get('call') || null,
    filter: parseFilter(parts),
  }
}

const oneOf = <Value extends string>(known: ReadonlyArray<Value>, text: string | null): Value | '' =>
  known.find((value) => value === text) ?? ''

const parseFilter = (parts: URLSearchParams): LogFilter => {
  const filter: LogFilter = {
    lane: oneOf(lanes, parts.get('lane')),
    verdict: oneOf(verdicts, parts.get('verdict')),
    reason: parts.get('reason') ?? '',
    principal: parts.get('principal') ?? '',
    text: parts.get('text') ?? '',
  }
  return Object.values(filter).every((value) => value === '') ? noFilter : filter
}

export const formatPlace = ({ view, scope, position, call, filter }: Place): string => {
  const parts = new URLSearchParams({ view })
  if (scope !== null) parts.set('scope', scope)
  if (position !== null) parts.set('at', String(position))
  if (call !== null) parts.set('call', call)
  for (const [name, value] of Object.entries(filter)) if (value !== '') parts.set(name, value)
  return `#${parts}`
}
