/** Input tokens used in the last minutes, counted by second. Bounded: one slot a second. */
export interface Slot {
  /** Epoch second. */
  readonly second: number
  readonly tokens: number
}

/** Oldest first, one for each second that has any. */
export type Slots = ReadonlyArray<Slot>

export const minuteMs = 60_000
/** A whole calendar minute and the minute before its last second are still there a minute after its end. */
const keptSeconds = 4 * 60
/** Old slots are dropped many at a time, so that most additions need no search for them. */
const spareSeconds = 30
/** A few seconds more than that may come late, or from a clock that went back. */
export const mostSlots = 2 * (keptSeconds + spareSeconds)

const secondOf = (atMs: number): number => Math.floor(atMs / 1000)

/** Tokens after `fromMs` and up to `toMs`, by whole seconds. */
export const between = (slots: Slots, fromMs: number, toMs: number): number => {
  const [since, until] = [secondOf(fromMs), secondOf(toMs)]
  let sum = 0
  for (let index = slots.length - 1; index >= 0; index -= 1) {
    const slot = slots[index] as Slot
    if (slot.second <= since) break
    if (slot.second <= until) sum += slot.tokens
  }
  return sum
}

/** The first second that overlaps the minute before `atMs`. It is counted whole, so no call leaves the minute too soon. */
const firstSecond = (atMs: number): number => secondOf(atMs - minuteMs)

/** Tokens of the minute before `atMs` and of anything later. Whole seconds count, so it may cover up to 61 s. */
export const trailing = (slots: Slots, atMs: number): number => {
  const first = firstSecond(atMs)
  let sum = 0
  for (let index = slots.length - 1; index >= 0 && slots[index]!.second >= first; index -= 1)
    sum += slots[index]!.tokens
  return sum
}

/** `slots` with `tokens` added to the second of `atMs` (taken away when negative), without the slots that are too old at `nowMs`. */
export const added = (slots: Slots, tokens: number, atMs: number, nowMs: number): Slots => {
  const second = secondOf(atMs)
  const oldest = secondOf(nowMs) - keptSeconds
  const first = slots[0]
  const kept =
    first !== undefined && first.second <= oldest - spareSeconds
      ? slots.filter((slot) => slot.second > oldest)
      : slots.slice()
  let index = kept.length
  while (index > 0 && kept[index - 1]!.second > second) index -= 1
  const here = kept[index - 1]
  if (here?.second === second) kept[index - 1] = { second, tokens: Math.max(0, here.tokens + tokens) }
  else if (tokens > 0) kept.splice(index, 0, { second, tokens })
  return kept
}

/** Epoch milliseconds at which the trailing minute has fallen to `tokens` or less, without further use; Infinity for less than none. */
export const fallsTo = (slots: Slots, tokens: number, atMs: number): number => {
  if (tokens < 0) return Number.POSITIVE_INFINITY
  let sum = trailing(slots, atMs)
  if (sum <= tokens) return atMs
  const first = firstSecond(atMs)
  for (const slot of slots) {
    if (slot.second < first) continue
    sum -= slot.tokens
    if (sum <= tokens) return leftAt(slot)
  }
  return atMs
}

/** When the oldest of the trailing minute leaves it, epoch milliseconds; Infinity when it is empty. */
export const leavesAt = (slots: Slots, atMs: number): number => {
  const first = firstSecond(atMs)
  const oldest = slots.find(({ second, tokens }) => second >= first && tokens > 0)
  return oldest === undefined ? Number.POSITIVE_INFINITY : leftAt(oldest)
}

/** A slot leaves the minute when its whole second has. */
const leftAt = ({ second }: Slot): number => (second + 1) * 1000 + minuteMs
