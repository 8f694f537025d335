/** Texts with places for values of a request: `{header:x-session}`, `{header:x-meta#/turn_id|header:x-turn}`. */
import { familyOf } from './model-family.ts'
import { pointerOf } from './pointer.ts'
import type { Subject } from './subject.ts'

/** A value of a request; null where the request has none. */
export type Source = (subject: Subject) => string | null

const named: Readonly<Record<string, Source>> = {
  upstream: ({ request }) => request.upstream.name,
  provider: ({ request }) => request.upstream.provider,
  path: ({ request }) => request.path,
  model: ({ request }) => request.model,
  family: ({ request }) => familyOf(request.model),
  credential: (subject) => subject.credential,
}

export const sourceSyntax =
  'upstream, provider, path, model, family, credential, header:NAME, header:NAME#/POINTER, body:/POINTER, body:/POINTER#/POINTER, jwt:CLAIM or jwt:/POINTER'

/** Null for what names no source. */
export const sourceOf = (text: string): Source | null => {
  if (Object.hasOwn(named, text)) return named[text] as Source
  const [, kind = '', rest = ''] = /^(header|body|jwt):(.+)$/.exec(text) ?? []
  const mark = rest.indexOf('#')
  const place = mark < 0 ? rest : rest.slice(0, mark)
  const inside = mark < 0 ? null : rest.slice(mark + 1)
  if (inside !== null && (!inside.startsWith('/') || kind === 'jwt')) return null
  const within = inside === null ? null : pointerOf(inside)
  if (kind === 'header' && /^[\w-]+$/.test(place)) {
    const name = place.toLowerCase()
    return (subject) => subject.header(name, within)
  }
  if (kind === 'body' && place.startsWith('/')) {
    const at = pointerOf(place)
    return (subject) => subject.body(at, within)
  }
  if (kind !== 'jwt') return null
  const pointer = place.startsWith('/') ? pointerOf(place) : [place]
  return (subject) => subject.claim(pointer)
}

/** Values of clients that become part of a credential are shown as fingerprints. */
const isSecret = (text: string): boolean => /^(?:header|body|jwt):/.test(text)

export interface TemplateOptions {
  /** Values of headers, bodies and tokens are put in as fingerprints. */
  readonly sealed: boolean
}

/** Null where a place has no value. */
export type Template = (subject: Subject) => string | null

/** The compiled text; or the placeholder that names no source. */
export const templateOf = (
  text: string,
  { sealed }: TemplateOptions,
): Template | { readonly unknown: string } => {
  const parts: Array<Source> = []
  for (const piece of text.split(/(\{[^}]*\})/)) {
    if (!piece.startsWith('{')) {
      parts.push(() => piece)
      continue
    }
    const alternatives: Array<Source> = []
    for (const name of piece.slice(1, -1).split('|')) {
      const source = sourceOf(name)
      if (source === null) return { unknown: piece }
      alternatives.push(sealed && isSecret(name) ? sealing(source) : source)
    }
    parts.push((subject) => firstOf(alternatives, subject))
  }
  return (subject) => {
    let filled = ''
    for (const part of parts) {
      const value = part(subject)
      if (value === null) return null
      filled += value
    }
    return filled === '' ? null : filled
  }
}

const sealing =
  (source: Source): Source =>
  (subject) => {
    const value = source(subject)
    return value === null ? null : subject.sealed(value)
  }

const firstOf = (sources: ReadonlyArray<Source>, subject: Subject): string | null => {
  for (const source of sources) {
    const value = source(subject)
    if (value !== null) return value
  }
  return null
}
