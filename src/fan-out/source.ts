/** Gives items one at a time, from any kind of iterable and to any number of callers. */

export interface Next<T> {
  readonly item: T
  /** From 0. */
  readonly index: number
}

export interface Source<T> {
  /** The next item; null at the end, or once stopped. Rejects with the error that the iterable threw. */
  readonly next: () => Promise<Next<T> | null>
  /** No more items are wanted: waiting callers get null, and the iterable is told. */
  readonly stop: () => Promise<void>
}

export const sourceOf = <T>(items: Iterable<T> | AsyncIterable<T>): Source<T> => {
  const iterator =
    Symbol.asyncIterator in items ? items[Symbol.asyncIterator]() : (items as Iterable<T>)[Symbol.iterator]()
  const asked = new Set<(nothing: null) => void>()
  let count = 0
  let ended = false
  let turn: Promise<unknown> = Promise.resolve()

  const pull = async (): Promise<Next<T> | null> => {
    if (ended) return null
    try {
      const result = await iterator.next()
      if (ended) return null
      if (!result.done) return { item: result.value, index: count++ }
      ended = true
      return null
    } catch (error) {
      if (ended) return null
      ended = true
      throw error
    }
  }

  const next = (): Promise<Next<T> | null> => {
    // Not every async iterator accepts a second request before it has answered the first.
    const pulled = turn.then(pull)
    turn = pulled.catch(() => {})
    return new Promise((resolve, reject) => {
      asked.add(resolve)
      const forget = () => asked.delete(resolve)
      pulled.then(resolve, reject).finally(forget)
    })
  }

  const stop = async (): Promise<void> => {
    if (ended) return
    ended = true
    const pulling = asked.size > 0
    for (const resolve of asked) resolve(null)
    const returned = (async () => iterator.return?.())().catch(() => {})
    // A generator that works on an item answers only after that item, which may never come.
    if (!pulling) await returned
  }

  return { next, stop }
}
