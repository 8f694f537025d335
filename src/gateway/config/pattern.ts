/** Patterns of scope names. */

/** `*` stands for anything, slashes too. Walks the literal parts in order: no pattern can make it slow. */
export const matcherOf = (pattern: string): ((scope: string) => boolean) => {
  const [first = '', ...rest] = pattern.split('*')
  const last = rest.pop()
  if (last === undefined) return (scope) => scope === pattern
  return (scope) => {
    if (!scope.startsWith(first)) return false
    let at = first.length
    for (const part of rest) {
      const found = scope.indexOf(part, at)
      if (found < 0) return false
      at = found + part.length
    }
    return scope.length >= at + last.length && scope.endsWith(last)
  }
}
