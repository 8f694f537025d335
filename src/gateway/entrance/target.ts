/** The target of a request (RFC 9112 section 3.2): read without a parser that could throw, and changed in no byte. */

import type { IncomingMessage } from 'node:http'

export interface Target {
  /** Begins with `/`; as the client wrote it. */
  readonly path: string
  /** What follows the first `?`; null when there is none, empty behind a bare one. */
  readonly query: string | null
  /** Host and port of an absolute target, which stand above the Host field; null for any other. */
  readonly authority: string | null
}

const absolute = /^https?:\/\/([^/?#]*)(.*)$/i

/** Null for what names no path: a fragment, `*`, a scheme of its own. */
export const targetOf = (raw: string | undefined): Target | null => {
  if (raw === undefined) return null
  const named = absolute.exec(raw)
  const authority = named === null ? null : (named[1] as string)
  const rest = named === null ? raw : (named[2] as string)
  const inOrigin = rest === '' || rest.startsWith('?') ? `/${rest}` : rest
  const isEmpty = raw === '' || authority === ''
  if (isEmpty || !inOrigin.startsWith('/') || inOrigin.includes('#')) return null
  const mark = inOrigin.indexOf('?')
  return {
    path: mark < 0 ? inOrigin : inOrigin.slice(0, mark),
    query: mark < 0 ? null : inOrigin.slice(mark + 1),
    authority,
  }
}

/** How often a path is decoded at most: servers behind a proxy decode twice at times. */
const mostDecodings = 4

/** Overlong UTF-8 of `.` and `/`, which old decoders take for them. */
const overlong: ReadonlyArray<readonly [RegExp, string]> = [
  [/%c0%ae/gi, '.'],
  [/%c0%af/gi, '/'],
]

const decodedOnce = (path: string): string =>
  overlong
    .reduce((text, [pattern, meaning]) => text.replaceAll(pattern, meaning), path)
    .replaceAll(/%([0-7][0-9a-f])/gi, (_, digits: string) => String.fromCharCode(Number.parseInt(digits, 16)))

/** Segments end at slashes and backslashes; parameters behind `;` do not count. */
const hasDotDot = (path: string): boolean => /(?:^|[/\\])\.\.(?:;[^/\\]*)?(?:[/\\]|$)/.test(path)

/** Some server could read a segment of `path` as `..`, in one encoding or another. */
export const climbs = (path: string): boolean => {
  let text = path
  for (let decodings = 0; decodings <= mostDecodings; decodings += 1) {
    if (hasDotDot(text)) return true
    const next = decodedOnce(text)
    if (next === text) return false
    text = next
  }
  // Still changing after so many rounds: nobody writes a path like that by accident.
  return true
}

/** `node:http` shows the first of several; another server may take the last. The number of Host fields. */
export const hostsIn = ({ rawHeaders }: IncomingMessage): number =>
  rawHeaders.filter((part, index) => index % 2 === 0 && part.toLowerCase() === 'host').length
