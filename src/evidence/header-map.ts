/** An object that lists its headers as `(value, name)`: the Fetch `Headers`, a `Map`. */
export interface HeadersLike {
  forEach(visit: (value: string, name: string) => void): void
}

export type HeaderBag = Readonly<Record<string, string | ReadonlyArray<string> | undefined>> | HeadersLike

/** Headers beyond this count are not read. */
const headerCap = 256
/** Longer values are not limit headers. */
const headerValueCapChars = 2048

/** Lower-cased header map; repeated values are joined by `, ` as Fetch does. */
export const headerMap = (headers: unknown): ReadonlyMap<string, string> => {
  const map = new Map<string, string>()
  const add = (name: unknown, value: unknown): void => {
    if (typeof name !== 'string' || map.size >= headerCap || name.length > headerValueCapChars) return
    const text = headerText(value)
    if (text !== null) map.set(name.toLowerCase(), text)
  }
  if (typeof headers !== 'object' || headers === null) return map
  if (Array.isArray(headers)) {
    for (const pair of headers.slice(0, headerCap)) if (Array.isArray(pair)) add(pair[0], pair[1])
    return map
  }
  if ('forEach' in headers && typeof headers.forEach === 'function') {
    const listed = headers as HeadersLike
    listed.forEach((value, name) => {
      add(name, value)
    })
    return map
  }
  for (const name in headers) {
    if (map.size >= headerCap) break
    add(name, (headers as Readonly<Record<string, unknown>>)[name])
  }
  return map
}

const headerText = (value: unknown): string | null => {
  if (typeof value === 'string') return value.length <= headerValueCapChars ? value.trim() : null
  if (typeof value === 'number') return String(value)
  if (!Array.isArray(value)) return null
  const texts = value.slice(0, 8).filter((each): each is string => typeof each === 'string')
  const joined = texts.map((each) => each.slice(0, headerValueCapChars).trim()).join(', ')
  return joined.length <= headerValueCapChars ? joined : null
}
