/** Which header fields travel: all but those of one hop, and those that speak to the gateway itself. */
import { priorityHeader } from '../../carrier/priority.ts'

/** RFC 9110 section 7.6.1, and what HTTP/1.0 proxies left behind. */
const hopByHop: ReadonlySet<string> = new Set([
  'connection',
  'keep-alive',
  'proxy-authenticate',
  'proxy-authorization',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
])

/** Set anew for the next hop. `accept-encoding`: an answer that is compressed cannot be read in passing. */
const renewed: ReadonlySet<string> = new Set(['host', 'content-length', 'expect', 'accept-encoding'])

export const ownPrefix = 'x-rightofway-'

/** The field speaks to the lanes; no provider is told of it. `name` is in lower case. */
export const isOwnField = (name: string): boolean => name.startsWith(ownPrefix) || name === priorityHeader

const plainly = /^\s*(?:keep-alive|close)\s*$/i

/** Fields that the sender has named as of this hop, in any number of `Connection` fields; null where there are none. */
const listed = (raw: ReadonlyArray<string>): ReadonlySet<string> | null => {
  let names: Set<string> | null = null
  for (let index = 0; index + 1 < raw.length; index += 2) {
    const value = raw[index + 1] as string
    if ((raw[index] as string).toLowerCase() !== 'connection' || plainly.test(value)) continue
    names ??= new Set()
    for (const name of value.split(',')) names.add(name.trim().toLowerCase())
  }
  return names
}

export interface ForwardOptions {
  /** The upstream understands `x-resource-priority`. */
  readonly honoursPriority: boolean
  /** The body is passed on as it comes, so its stated length holds. */
  readonly keepLength: boolean
}

/** Fields for the upstream, names and values in turn. `raw` is what the client sent. */
export const requestFields = (
  raw: ReadonlyArray<string>,
  { honoursPriority, keepLength }: ForwardOptions,
): Array<string> => {
  const named = listed(raw)
  const fields: Array<string> = []
  for (let index = 0; index + 1 < raw.length; index += 2) {
    const name = (raw[index] as string).toLowerCase()
    if (hopByHop.has(name) || named?.has(name)) continue
    if (renewed.has(name) && !(keepLength && name === 'content-length')) continue
    if (name.startsWith(ownPrefix) || (name === priorityHeader && !honoursPriority)) continue
    fields.push(name, raw[index + 1] as string)
  }
  fields.push('accept-encoding', 'identity')
  return fields
}

/** What `node:http` refuses to write in a value. */
const unwritable = /[^\t\x20-\x7e\x80-\xff]/
const token = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/

/** Fields for the client, names and values in turn, with `own` added. `raw` is what the upstream sent. */
export const answerFields = (
  raw: ReadonlyArray<string>,
  own: Readonly<Record<string, string>>,
): Array<string> => {
  const named = listed(raw)
  const fields: Array<string> = []
  for (let index = 0; index + 1 < raw.length; index += 2) {
    const name = raw[index] as string
    const value = raw[index + 1] as string
    const lower = name.toLowerCase()
    if (hopByHop.has(lower) || named?.has(lower) || lower.startsWith(ownPrefix)) continue
    if (token.test(name) && !unwritable.test(value)) fields.push(name, value)
  }
  for (const name in own) fields.push(name, own[name] as string)
  return fields
}

/** Trailers that may travel, as pairs: none that frames, routes or describes a body (RFC 9110 section 6.5.1). */
export const trailerFields = (raw: ReadonlyArray<string>): Array<[string, string]> => {
  const fields = answerFields(raw, {})
  const pairs: Array<[string, string]> = []
  for (let index = 0; index + 1 < fields.length; index += 2) {
    const name = fields[index] as string
    if (!neverTrailing.test(name)) pairs.push([name, fields[index + 1] as string])
  }
  return pairs
}

const neverTrailing =
  /^(?:content-(?:length|encoding|type|range)|host|set-cookie|authorization|cache-control|age|expires|date|location|retry-after|vary)$/i
