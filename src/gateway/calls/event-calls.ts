/** Which calls are answered by an event stream when they succeed. */

import type { Wire } from '../answers/wire.ts'
import { memberAt } from '../identity/members.ts'

/** Paths whose answer is an event stream when the body says `stream: true`. Other servers stream other forms. */
const streamPaths: Readonly<Record<Wire, RegExp | null>> = {
  anthropic: /\/messages$/,
  openai: /\/(?:chat\/completions|completions|responses|messages)$/,
  gemini: null,
  other: null,
}

/** Whether the client asks for an event stream. `path` and `query` are the upstream's; `body` is decoded. */
export const asksForEvents = (
  { wire, path, query }: { readonly wire: Wire; readonly path: string; readonly query: string | null },
  body: Buffer,
): boolean => {
  if (wire === 'gemini')
    return /:streamGenerateContent$/.test(path) && new URLSearchParams(query ?? '').get('alt') === 'sse'
  if (streamPaths[wire]?.test(path) !== true) return false
  const at = memberAt(body, 'stream')
  return at !== null && body.toString('latin1', at, at + 4) === 'true'
}
