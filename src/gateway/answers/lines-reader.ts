/** Reads an answer of one JSON object a line (NDJSON), as Ollama streams it. */
import { classify, errorsIn, readUsage, usageOf } from '../../evidence/index.ts'
import type { AnswerHead } from '../passage/transport.ts'
import { type BodyReader, type BodyReading, coreUsage, nothingRead } from './body-reading.ts'

/** A longer line is not read, bytes. */
const lineBytes = 256 * 1024
/** Only lines that hold one of these are parsed: most hold a piece of text and nothing else. */
const telling =
  /"error"|"usage|"prompt_eval_count"|"done"\s*:\s*true|"(?:status_?|error_?|err_?)?code"\s*:\s*"?[1-9-]/i

export const makeLinesReader = (provider: string, head: AnswerHead, receivedAtMs: number): BodyReader => {
  let rest: Buffer | null = Buffer.alloc(0)
  let reading: BodyReading = nothingRead
  let lines = 0
  let saysDone = false
  let done = false
  const take = (line: Buffer): void => {
    if (line.length === 0) return
    lines += 1
    const text = line.toString('utf8')
    if (/"done"\s*:/.test(text)) saysDone = true
    if (!telling.test(text)) return
    const value = parsed(text)
    if (typeof value !== 'object' || value === null) return
    const usage = coreUsage(usageOfLine(provider, value)) ?? reading.usage
    const { headers } = head
    const evidence =
      reading.evidence ??
      (errorsIn(value)
        ? classify({ provider, status: 200, headers, body: value, receivedAt: receivedAtMs })
        : null)
    reading = { usage, evidence, truncated: false }
    if (evidence !== null || ('done' in value && value.done === true)) done = true
  }
  return {
    push: (chunk) => {
      const bytes = rest === null ? chunk : Buffer.concat([rest, chunk])
      let from = 0
      for (let at = bytes.indexOf(0x0a); at >= 0; at = bytes.indexOf(0x0a, from)) {
        if (rest !== null) take(bytes.subarray(from, at))
        // Behind the end of a line that was too long, the next one is read again.
        else rest = Buffer.alloc(0)
        from = at + 1
      }
      const left = bytes.subarray(from)
      if (rest !== null) rest = left.length > lineBytes ? null : Buffer.from(left)
    },
    end: (read) => {
      if (rest !== null) take(rest)
      reading = { ...reading, truncated: saysDone && !done && reading.evidence === null }
      read()
    },
    reading: () => reading,
    get done() {
      return done
    },
    get begun() {
      return lines > 0
    },
    unread: false,
  }
}

const usageOfLine = (provider: string, value: object): ReturnType<typeof readUsage> => {
  if (!('prompt_eval_count' in value) && !('eval_count' in value)) return readUsage(provider, value)
  const { prompt_eval_count = 0, eval_count = 0 } = value as Record<string, unknown>
  return usageOf(provider, { prompt_tokens: prompt_eval_count, completion_tokens: eval_count })
}

const parsed = (text: string): unknown => {
  try {
    return JSON.parse(text)
  } catch {
    return null
  }
}
