/**
 * Opens the wrappers that gateways, client libraries and logs put around a refusal: event text, arrays, JSON
 * in a string, `metadata.raw`, exception prefixes, Python reprs, decoded event frames. It follows only the
 * keys that error envelopes use, so model output is never read. It reads a bounded part of any input.
 */
import { isObject, type JsonObject, type ProviderAnswer, type Signal, snakeCase } from './answer.ts'
import { parseInstantMs } from './duration.ts'
import { envelopesOf, faultsIn } from './envelope.ts'
import { looksLikeEvents } from './event-text.ts'
import { type Family, familyOf } from './family.ts'
import { headerMap } from './header-map.ts'
import { providerReceiptMs, readLimitReadings } from './headers.ts'
import { readLiteral } from './literal.ts'

/** Most characters that a rule reads, per message and in total. */
export const messageCapChars = 4096
export const textCapChars = 16_384
/** Objects, arrays and texts opened in one answer, and how deep. */
export const visitCap = 300
export const depthCap = 12
/** Longer JSON text is not parsed whole: its head is read as a literal. */
export const jsonCapChars = 262_144
const literalCapChars = 65_536
const arrayCap = 24

const codeKeys = [
  'code',
  'type',
  'status',
  'reason',
  'error_type',
  'errorType',
  'error_code',
  'errorCode',
  'limit_source',
  'limit_type',
  '__type',
  'Code',
] as const
const statusKeys = ['code', 'status', 'statusCode', 'status_code', 'raw_status_code', 'http_status'] as const
const textKeys = [
  'status_msg',
  'error_msg',
  'message',
  'Message',
  'msg',
  'error',
  'error_message',
  'errorMessage',
  'error_description',
  'detail',
  'details',
  'description',
  'raw',
  'title',
  'body',
] as const
const nestKeys = [
  'base_resp',
  'error',
  'errors',
  'message',
  'detail',
  'details',
  'metadata',
  'raw',
  'response',
  'body',
  'data',
  'payload',
  'cause',
  'exception',
  'innererror',
  'innerError',
  'inner_error',
  'original_error',
  'upstream',
  'fault',
  'lastError',
] as const

interface Found<Value> {
  readonly value: Value
  readonly depth: number
}

interface Collector {
  readonly codes: Found<string>[]
  readonly texts: Found<string>[]
  readonly statuses: Found<number>[]
  readonly objects: JsonObject[]
  readonly innerHeaders: Map<string, string>
  readonly named: Set<Family>
  readonly seen: Set<object>
  visits: number
}

export interface Unwrapped extends Signal {
  /** Objects, arrays and texts opened; at most `visitCap`. */
  readonly visits: number
}

export const unwrap = (answer: ProviderAnswer): Unwrapped => {
  const headers = headerMap(answer.headers)
  const outer = Number.isInteger(answer.status) ? answer.status : 0
  const collector: Collector = {
    codes: [],
    texts: [],
    statuses: [],
    objects: [],
    innerHeaders: new Map(),
    named: new Set(),
    seen: new Set(),
    visits: 0,
  }
  const refused = outer !== 0 && (outer < 200 || outer > 299)
  const roots = refused ? [answer.body] : envelopesOf(answer.body, outer === 0)
  for (const root of roots.slice(0, arrayCap)) visit(collector, root, 0)
  const typed = headers.get('x-amzn-errortype')
  if (refused && typed !== undefined) addCode(collector, typed, 0)
  const receivedAtMs = providerReceiptMs(receiptOf(answer.receivedAt), headers)
  const declared = familyOf(answer.provider)
  return {
    declared,
    named: [...collector.named],
    status: effectiveStatus(outer, innermostFirst(collector.statuses)[0] ?? null),
    isError: refused || roots.length > 0,
    codes: [...new Set(innermostFirst(collector.codes))],
    text: innermostFirst(collector.texts).join('\n').slice(0, textCapChars),
    objects: collector.objects,
    headers,
    innerHeaders: collector.innerHeaders,
    limits: readLimitReadings(declared, headers),
    receivedAtMs,
    visits: collector.visits,
  }
}

/** Statuses that only a provider chooses. Any other may be a gateway's, and the inner one is more precise. */
const ownStatuses: ReadonlySet<number> = new Set([402, 413, 429, 498, 529])

const effectiveStatus = (outer: number, inner: number | null): number => {
  if (inner === null || ownStatuses.has(outer)) return outer
  return inner
}

const receiptOf = (receivedAt: unknown): number | null => {
  if (typeof receivedAt === 'number' && Number.isFinite(receivedAt)) return receivedAt
  return typeof receivedAt === 'string' ? parseInstantMs(receivedAt) : null
}

const innermostFirst = <Value>(found: ReadonlyArray<Found<Value>>): Value[] => {
  return found.toSorted((left, right) => right.depth - left.depth).map(({ value }) => value)
}

const visit = (collector: Collector, value: unknown, depth: number): void => {
  if (depth > depthCap || collector.visits >= visitCap) return
  if (typeof value === 'string') {
    collector.visits += 1
    visitText(collector, value, depth)
    return
  }
  if (typeof value !== 'object' || value === null || collector.seen.has(value)) return
  collector.visits += 1
  collector.seen.add(value)
  if (Array.isArray(value)) for (const each of value.slice(0, arrayCap)) visit(collector, each, depth + 1)
  else visitObject(collector, value as JsonObject, depth)
}

const visitObject = (collector: Collector, object: JsonObject, depth: number): void => {
  collector.objects.push(object)
  for (const key of codeKeys) if (typeof object[key] === 'string') addCode(collector, object[key], depth)
  for (const key of statusKeys) addStatus(collector, object[key], depth)
  for (const key of ['code', 'error_code', 'status_code'] as const) {
    if (typeof object[key] === 'number') addCode(collector, String(object[key]), depth)
  }
  for (const key of textKeys) {
    const text = object[key]
    if (typeof text !== 'string') continue
    visit(collector, text, depth + 1)
    if (/^[\w.-]{3,60}$/.test(text)) addCode(collector, text, depth)
  }
  // Client libraries keep the body as text. Any other text under these keys may be output.
  for (const key of ['data', 'response', 'payload'] as const) {
    const text = object[key]
    if (typeof text === 'string' && /^\s*[[{]/.test(text)) visit(collector, text, depth + 1)
  }
  const family = familyOf(object['provider_name'])
  if (family !== null) collector.named.add(family)
  if (isObject(object['headers'])) {
    for (const [name, text] of headerMap(object['headers'])) collector.innerHeaders.set(name, text)
  }
  for (const key of nestKeys) if (typeof object[key] === 'object') visit(collector, object[key], depth + 1)
  for (const each of faultsIn(object)) visit(collector, each, depth + 1)
}

const addCode = (collector: Collector, code: string, depth: number): void => {
  // Amazon appends a URL after a colon, and puts a namespace before a hash.
  const bare = code.split(':', 1)[0]?.split('#').at(-1) ?? ''
  const folded = snakeCase(bare)
  if (folded === '' || folded === 'error' || folded === 'none' || collector.codes.length >= visitCap) return
  collector.codes.push({ value: folded, depth })
}

const addStatus = (collector: Collector, value: unknown, depth: number): void => {
  const status = typeof value === 'string' && /^\d{3}$/.test(value) ? Number(value) : value
  if (typeof status !== 'number' || !Number.isInteger(status) || status < 400 || status > 599) return
  collector.statuses.push({ value: status, depth })
}

const visitText = (collector: Collector, text: string, depth: number): void => {
  const trimmed = text.slice(0, jsonCapChars).trim()
  if (trimmed === '' || looksLikeMarkup(trimmed)) return
  if (looksLikeEvents(trimmed)) {
    const found = envelopesOf(text, false)
    for (const each of found.slice(0, arrayCap)) visit(collector, each, depth + 1)
    if (found.length > 0) return
  }
  const whole = text.length <= jsonCapChars ? parseWhole(trimmed) : undefined
  if (whole !== undefined) {
    visit(collector, whole, depth + 1)
    return
  }
  visitMixedText(collector, trimmed.slice(0, literalCapChars), depth)
}

/** Prose with a literal somewhere inside: a client library's message, a log line, a gateway's prefix. */
const visitMixedText = (collector: Collector, text: string, depth: number): void => {
  const opensAt = text.search(/\{|\[\{/)
  const literal = opensAt < 0 ? null : (readLiteral(text, opensAt) ?? unescapedLiteral(text, opensAt))
  if (literal === null) {
    addMessage(collector, text, depth)
    return
  }
  const before = text.slice(0, opensAt)
  addMessage(collector, before, depth)
  // Client libraries write `Error code: 429 - {…}` or `429 {…}`.
  addStatus(collector, /(?:^|[\s:(])(\d{3})\s*-?\s*(?:b?['"])?$/.exec(before.slice(-40))?.[1], depth)
  addMessage(collector, text.slice(literal.endsAt), depth)
  visit(collector, literal.value, depth + 1)
}

/** JSON that was itself put in a JSON string, then into prose. */
const unescapedLiteral = (text: string, opensAt: number): ReturnType<typeof readLiteral> => {
  const rest = text.slice(opensAt)
  if (!/^\{\s*\\+["']/.test(rest)) return null
  const literal = readLiteral(rest.replace(/\\+(["'])/g, '$1'), 0)
  return literal === null ? null : { value: literal.value, endsAt: text.length }
}

const addMessage = (collector: Collector, text: string, depth: number): void => {
  const message = text.slice(0, messageCapChars).trim()
  if (message === '') return
  collector.texts.push({ value: message, depth })
  for (const [, name] of message.matchAll(/\b([A-Z][A-Za-z]{2,60}(?:Exception|Error))\b/g)) {
    if (name === undefined || collector.codes.length >= visitCap) break
    addCode(collector, name, depth)
    // `AnthropicException`, `VertexAIException`: the gateway names the provider that answered it.
    const family = name.endsWith('Exception') ? familyOf(name) : null
    if (family !== null) collector.named.add(family)
  }
  const prefix = /\b(vertex_ai|gemini|bedrock)\w{0,20}Exception\b/.exec(message)?.[1]
  if (prefix !== undefined) collector.named.add(familyOf(prefix) ?? 'gemini')
}

const parseWhole = (text: string): unknown => {
  if (!/^["[{]/.test(text)) return undefined
  try {
    const value: unknown = JSON.parse(text)
    return typeof value === 'string' || typeof value === 'object' ? value : undefined
  } catch {
    return undefined
  }
}

/** HTML pages of edges and load balancers: only their status is evidence. */
const looksLikeMarkup = (text: string): boolean => {
  return /^(?:<!doctype|<html|<\?xml|<head|<body|<!--)/i.test(text)
}
