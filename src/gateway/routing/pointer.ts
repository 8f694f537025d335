/** JSON pointers (RFC 6901). A text on the way that holds JSON itself is gone into behind a `#`. */

/** Undefined where nothing stands. `pointer` is empty for the value itself. */
export const atPointer = (value: unknown, pointer: string): unknown => {
  let at = value
  for (const part of pointer.split('/').slice(1)) {
    if (typeof at !== 'object' || at === null) return undefined
    const name = part.replaceAll('~1', '/').replaceAll('~0', '~')
    if (!Object.hasOwn(at, name)) return undefined
    at = (at as Readonly<Record<string, unknown>>)[name]
  }
  return at
}
