/** A client that asks again under the same id, after a failure that it saw. */

/** How often a client may ask under the same id while each try fails. */
const mostRepeats = 1_000

/** Endings after which the same id rightly comes again: its client saw a failure, and was mostly invited to. */
const repeatable: ReadonlySet<string | undefined> = new Set(['failed', 'cancelled', 'timedOut', 'throttled'])

export const isRepeatable = (ending: string | undefined): boolean => repeatable.has(ending)

/**
 * The id of the next try, which is a dispatch of its own; null when one of them was answered, or when
 * there were too many. `first` is the client's own count of its tries, where it has one.
 */
export const nextId = (
  id: string,
  first: number,
  endingOf: (id: string) => string | undefined,
): string | null => {
  for (let number = first; number < first + mostRepeats; number += 1) {
    const next = `${id}:retry-${number}`
    const ending = endingOf(next)
    if (ending === undefined) return next
    if (!isRepeatable(ending)) return null
  }
  return null
}
