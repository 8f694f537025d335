/** Finds the row of a request, and the model that it asks. */
import { memberValue, textMember } from '../identity/members.ts'
import { boundaryIn, partText } from '../passage/form-parts.ts'
import { atPointer, pointerOf } from './pointer.ts'
import { type RouteRow, routeRows, unknownRow } from './route-rows.ts'

export interface RouteTable {
  /** The row of a POST to this path, which is without its query; `unknownRow` where none fits. */
  readonly rowOf: (path: string) => FoundRow
}

export interface FoundRow {
  readonly row: RouteRow
  /** As the path names it; null where it does not. */
  readonly modelInPath: string | null
  /** The row is one of the configuration. */
  readonly isOwn: boolean
}

interface Compiled {
  readonly row: RouteRow
  readonly pattern: RegExp
  readonly segments: number
  readonly placeholders: number
  readonly isOwn: boolean
}

/** The last word of a path: its verb behind a colon, or its last segment. Empty where that is a placeholder. */
const wordOf = (path: string): string => {
  const last = path.slice(path.lastIndexOf('/') + 1)
  const word = last.slice(last.lastIndexOf(':') + 1)
  return word.startsWith('{') ? '' : word
}

const compiled = (row: RouteRow, isOwn: boolean): Compiled => {
  const literal = row.path.replaceAll(/[.*+?^$()|[\]\\]/g, '\\$&')
  // A name may hold a colon of its own, as those of Bedrock do.
  const source = literal.replace('{model}', '([^/]+)').replaceAll('{any}', '[^/]+')
  return {
    row,
    pattern: new RegExp(`${source}$`),
    segments: row.path.split('/').length,
    placeholders: row.path.split('{').length - 1,
    isOwn,
  }
}

const unknown: FoundRow = { row: unknownRow, modelInPath: null, isOwn: false }

/** `own` rows come before those that are shipped. */
export const makeRouteTable = (own: ReadonlyArray<RouteRow> = []): RouteTable => {
  const byWord = new Map<string, Array<Compiled>>()
  // The longer path says more, and of two as long that with fewer placeholders.
  const shipped = routeRows
    .map((row) => compiled(row, false))
    .sort((one, other) => other.segments - one.segments || one.placeholders - other.placeholders)
  for (const entry of [...own.map((row) => compiled(row, true)), ...shipped]) {
    const word = wordOf(entry.row.path)
    const entries = byWord.get(word)
    if (entries === undefined) byWord.set(word, [entry])
    else entries.push(entry)
  }
  const find = (entries: ReadonlyArray<Compiled> | undefined, path: string): FoundRow | null => {
    for (const { row, pattern, isOwn } of entries ?? []) {
      const match = pattern.exec(path)
      if (match !== null)
        return { row, modelInPath: match[1] === undefined ? null : decoded(match[1]), isOwn }
    }
    return null
  }
  return {
    rowOf: (path) => {
      const trimmed = path.replace(/\/+$/, '')
      return find(byWord.get(wordOf(trimmed)), trimmed) ?? find(byWord.get(''), trimmed) ?? unknown
    },
  }
}

export const shippedRoutes = makeRouteTable()

const decoded = (segment: string): string => {
  try {
    return decodeURIComponent(segment)
  } catch {
    return segment
  }
}

export interface ModelRequest {
  readonly found: FoundRow
  /** Without `?`; null when there is none. */
  readonly query: string | null
  readonly contentType: string
  /** Without its encoding. */
  readonly body: Buffer
}

export interface FoundModel {
  readonly model: string
  /** The place that named it; null where none did. */
  readonly from: string | null
}

/** A call of a known endpoint that names no model: `*`. A call that no row knows: `unknown`. */
export const modelAsked = (request: ModelRequest): FoundModel => {
  const { row } = request.found
  for (const place of row.model) {
    const named = modelAt(place, request)
    if (named !== null && named !== '') return { model: named, from: place }
  }
  return { model: row === unknownRow ? 'unknown' : '*', from: null }
}

const modelAt = (place: string, { found, query, contentType, body }: ModelRequest): string | null => {
  if (place === '{model}') return found.modelInPath
  if (place.startsWith('query:')) return new URLSearchParams(query ?? '').get(place.slice(6))
  const [prefix, pointer] = place.includes('=') ? (place.split('=') as [string, string]) : ['', place]
  const value = isForm(contentType) ? partAt(body, contentType, pointer) : textAt(body, pointer)
  return value === null ? null : prefix + value
}

const isForm = (contentType: string): boolean => /^\s*multipart\//i.test(contentType)

const partAt = (body: Buffer, contentType: string, pointer: string): string | null => {
  const boundary = boundaryIn(contentType)
  return boundary === null ? null : partText(body, boundary, pointer.slice(1))
}

/** The text at a JSON pointer into the body. */
export const textAt = (body: Buffer, pointer: string): string | null => {
  const [first = '', ...rest] = pointerOf(pointer)
  if (rest.length === 0) return textMember(body, first)
  const value = atPointer(memberValue(body, first), rest)
  return typeof value === 'string' ? value : null
}

/** The model that a POST asks to work, for clients that admit by themselves; null for what is no call, or names none. */
export const modelOf = (path: string, body: Buffer): string | null => {
  const found = shippedRoutes.rowOf(path)
  if (found.row.kind !== 'generating') return null
  const { model, from } = modelAsked({ found, query: null, contentType: '', body })
  return from === null && found.row === unknownRow ? null : model
}
