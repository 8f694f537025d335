/** The parts of a multipart body (RFC 7578): where each stands. Nothing is copied but their names. */

export interface FormPart {
  readonly name: string
  /** It is a file's. */
  readonly isFile: boolean
  readonly mediaType: string
  /** First byte of its content, and the first behind it. */
  readonly start: number
  readonly end: number
}

/** More parts than any API takes; what comes later is not looked at. */
const mostParts = 256
/** Fields of one part, bytes. */
const longestHead = 4_096
/** Longest text that is read, bytes. */
const longestText = 1_024

/** The boundary that a content type names; null when it is none of a form. */
export const boundaryIn = (contentType: string): string | null => {
  const named = /;\s*boundary=(?:"([^"]{1,70})"|([^\s;"]{1,70}))/i.exec(contentType)
  return named === null ? null : (named[1] ?? named[2] ?? null)
}

/**
 * In order. `body` is what has arrived of `totalBytes`: a part that goes on beyond it ends with the form, and one
 * that does not end in a whole body is left out.
 */
export const formParts = (
  body: Buffer,
  boundary: string,
  totalBytes = body.byteLength,
): ReadonlyArray<FormPart> => {
  const parts: Array<FormPart> = []
  const line = Buffer.from(`--${boundary}`)
  let at = body.indexOf(line)
  while (at >= 0 && parts.length < mostParts) {
    const headAt = at + line.length
    const headEnds = body.indexOf('\r\n\r\n', headAt)
    const found = body.indexOf(`\r\n--${boundary}`, Math.max(headAt, headEnds + 2))
    if (headEnds < 0 || (found < 0 && totalBytes <= body.byteLength)) return parts
    const next = found < 0 ? totalBytes : found
    const head = body.toString('utf8', headAt, Math.min(headEnds, headAt + longestHead))
    const disposition = /^content-disposition:(.*)$/im.exec(head)?.[1] ?? ''
    const name = /;\s*name="([^"]*)"/i.exec(disposition)?.[1] ?? /;\s*name=([^\s;"]+)/i.exec(disposition)?.[1]
    if (name !== undefined)
      parts.push({
        name,
        isFile: /;\s*filename\*?=/i.test(disposition),
        mediaType: /^content-type:\s*([^\s;]+)/im.exec(head)?.[1]?.toLowerCase() ?? '',
        start: headEnds + 4,
        end: Math.max(headEnds + 4, next),
      })
    at = found < 0 ? -1 : next + 2
  }
  return parts
}

/** The text of the last part of this name; null when there is none, or it is longer than a name can be. */
export const partText = (body: Buffer, boundary: string, name: string): string | null => {
  const part = formParts(body, boundary).findLast((one) => one.name === name && !one.isFile)
  if (part === undefined || part.end - part.start > longestText) return null
  return body.toString('utf8', part.start, part.end).trim()
}
