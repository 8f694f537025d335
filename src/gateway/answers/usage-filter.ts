/**
 * Takes out of a chat stream what it says only because the gateway asked for usage: the extra chunk at
 * its end, and `"usage":null` in every other chunk. All other bytes stay.
 */

/** A longer event passes as it is, bytes. */
const mostEventBytes = 1024 * 1024

const usageKey = Buffer.from('"usage"')

export class UsageFilter {
  #rest: Buffer = Buffer.alloc(0)
  /** The event under way is too long to be looked into. */
  #isPassing = false

  /** The bytes that the client would have got so far; an event is held until its end is here. */
  push(chunk: Buffer): Buffer {
    const bytes = this.#rest.length === 0 ? chunk : Buffer.concat([this.#rest, chunk])
    const out: Array<Buffer> = []
    let from = 0
    for (let end = eventEnd(bytes, from); end >= 0; end = eventEnd(bytes, from)) {
      const event = bytes.subarray(from, end)
      out.push(this.#isPassing ? event : filtered(event))
      this.#isPassing = false
      from = end
    }
    this.#rest = Buffer.from(bytes.subarray(from))
    if (this.#rest.length > mostEventBytes) {
      this.#isPassing = true
      // The last bytes may be the beginning of a blank line.
      out.push(this.#rest.subarray(0, -3))
      this.#rest = this.#rest.subarray(-3)
    }
    return Buffer.concat(out)
  }

  /** What is left when the stream is over. */
  end(): Buffer {
    const rest = this.#rest
    this.#rest = Buffer.alloc(0)
    return this.#isPassing ? rest : filtered(rest)
  }
}

/** Index behind the blank line that ends the event from `from` on; -1 while it is not here. */
const eventEnd = (bytes: Buffer, from: number): number => {
  const ends = ['\n\n', '\r\n\r\n', '\r\r'].map((blank) => {
    const at = bytes.indexOf(blank, from)
    return at < 0 ? -1 : at + blank.length
  })
  const found = ends.filter((end) => end >= 0)
  return found.length === 0 ? -1 : Math.min(...found)
}

const nothing = Buffer.alloc(0)

const filtered = (event: Buffer): Buffer => {
  if (!event.includes(usageKey)) return event
  const text = event.toString('utf8')
  const data = /^data: ?(\{.*\})[\r\n]*$/.exec(text)?.[1]
  const chunk = data === undefined ? null : parsed(data)
  if (data === undefined || chunk === null || !Array.isArray(chunk['choices'])) return event
  const { choices, usage } = chunk
  if (choices.length === 0 && typeof usage === 'object' && usage !== null) return nothing
  if (usage !== null) return event
  return Buffer.from(text.replace(data, () => withoutNull(data)))
}

/** `usage` is null and stands at the top: the last one of that name does, whatever is quoted before it. */
const withoutNull = (data: string): string => {
  const found = [...data.matchAll(/(,\s*)?"usage"\s*:\s*null(\s*,)?/g)]
  for (const match of found.reverse()) {
    const [whole, before, behind] = match
    const kept = before !== undefined && behind !== undefined ? before : ''
    const cut = data.slice(0, match.index) + kept + data.slice(match.index + whole.length)
    const without = parsed(cut)
    if (without !== null && !('usage' in without)) return cut
  }
  return data
}

const parsed = (text: string): Readonly<Record<string, unknown>> | null => {
  try {
    const value: unknown = JSON.parse(text)
    return typeof value === 'object' && value !== null ? { ...value } : null
  } catch {
    return null
  }
}
