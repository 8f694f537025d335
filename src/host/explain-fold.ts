/** Brings the story of a call to few lines: what happened again and again is told once, with its count and its span. */

export interface StoryLine {
  /** Epoch milliseconds. */
  readonly at: number
  readonly text: string
}

/** The most lines of an explanation. */
export const mostLines = 10

/** With its day and its zone. A time beyond a calendar's is shown as its number. */
export const momentWords = (atMs: number): string =>
  Math.abs(atMs) <= 8.64e15
    ? `${new Date(atMs).toISOString().replace('T', ' ').replace('Z', '')} UTC`
    : `epoch millisecond ${atMs}`

interface Group extends StoryLine {
  readonly count: number
  readonly untilMs: number
}

const groupWords = ({ at, text, count, untilMs }: Group): string =>
  count === 1
    ? `${momentWords(at)} ${text}`
    : `${count} times between ${momentWords(at)} and ${momentWords(untilMs)}: ${text}`

const grouped = (story: ReadonlyArray<StoryLine>): ReadonlyArray<Group> => {
  const groups = new Map<string, Group>()
  for (const { at, text } of story) {
    const { at: firstAt, count } = groups.get(text) ?? { at, count: 0 }
    groups.set(text, { at: firstAt, text, count: count + 1, untilMs: at })
  }
  return [...groups.values()]
}

/**
 * At most `most` lines (at least 3), in the order of their first moments. A story that fits is told line by
 * line; a longer one tells each text once; one that is still too long leaves out its middle and counts it.
 */
export const foldStory = (story: ReadonlyArray<StoryLine>, most: number): ReadonlyArray<string> => {
  if (story.length <= most) return story.map(({ at, text }) => `${momentWords(at)} ${text}`)
  const groups = grouped(story)
  if (groups.length <= most) return groups.map(groupWords)
  const end = groups.slice(groups.length - (most - 2))
  const left = groups.slice(1, groups.length - (most - 2))
  const times = left.reduce((sum, { count }) => sum + count, 0)
  return [groupWords(groups[0]!), `(${times} more lines, not shown)`, ...end.map(groupWords)]
}
