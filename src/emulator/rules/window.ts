/**
 * A trailing window of charges as a persistent queue in two lists, with a running sum: amortized
 * O(1) per charge at any rate, exact to the millisecond. Charges of one millisecond share a cell.
 */
export interface TrailingWindow {
  /** Oldest first. */
  readonly front: Cell | null
  /** Newest first. */
  readonly back: Cell | null
  readonly sum: number
  /** Time of the newest charge ever made; -1 before the first. */
  readonly newestAtMs: number
}

export interface Cell {
  readonly atMs: number
  readonly tokens: number
  readonly next: Cell | null
}

export const emptyWindow: TrailingWindow = { front: null, back: null, sum: 0, newestAtMs: -1 }

/** Adds a charge. `atMs` is never earlier than the newest. */
export const charge = (window: TrailingWindow, atMs: number, tokens: number): TrailingWindow => {
  if (tokens === 0) return window
  const { front, back, sum } = window
  const head =
    back !== null && back.atMs === atMs
      ? { atMs, tokens: back.tokens + tokens, next: back.next }
      : { atMs, tokens, next: back }
  return { front, back: head, sum: sum + tokens, newestAtMs: atMs }
}

/** Time of the oldest charge still inside; null when empty. */
export const oldestAtMs = (window: TrailingWindow): number | null => {
  if (window.front !== null) return window.front.atMs
  let cell = window.back
  while (cell !== null && cell.next !== null) cell = cell.next
  return cell === null ? null : cell.atMs
}

export interface Expiry {
  readonly window: TrailingWindow
  /** The charges that left, oldest first. */
  readonly expired: Cell | null
}

/** Drops charges made at or before `cutoffMs`. Returns the same window when no charge leaves. */
export const expire = (window: TrailingWindow, cutoffMs: number): Expiry => {
  let front = window.front ?? reversed(window.back)
  const back = window.front === null ? null : window.back
  if (front === null || front.atMs > cutoffMs) {
    if (window.front !== null || front === null) return { window, expired: null }
    // The reversed list is kept. Otherwise each look at an unchanged window would reverse it again.
    return { window: { ...window, front, back: null }, expired: null }
  }
  let rest = back
  let sum = window.sum
  let left: Cell | null = null
  while (front !== null && front.atMs <= cutoffMs) {
    sum -= front.tokens
    left = { atMs: front.atMs, tokens: front.tokens, next: left }
    front = front.next
    if (front === null && rest !== null) {
      front = reversed(rest)
      rest = null
    }
  }
  return { window: { front, back: rest, sum, newestAtMs: window.newestAtMs }, expired: reversed(left) }
}

const reversed = (list: Cell | null): Cell | null => {
  let turned: Cell | null = null
  for (let cell = list; cell !== null; cell = cell.next) {
    turned = { atMs: cell.atMs, tokens: cell.tokens, next: turned }
  }
  return turned
}
