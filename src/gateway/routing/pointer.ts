/** JSON pointers (RFC 6901), taken apart once. */
export type Pointer = ReadonlyArray<string>

/** Names on the way; none for the value itself. */
export const pointerOf = (text: string): Pointer =>
  text
    .split('/')
    .slice(1)
    .map((part) => part.replaceAll('~1', '/').replaceAll('~0', '~'))

/** Undefined where nothing stands. */
export const atPointer = (value: unknown, pointer: Pointer): unknown => {
  let at = value
  for (const name of pointer) {
    if (typeof at !== 'object' || at === null || !Object.hasOwn(at, name)) return undefined
    at = (at as Readonly<Record<string, unknown>>)[name]
  }
  return at
}
