/** Request bodies: held whole, since a call may have to be sent again. */
import type { IncomingMessage } from 'node:http'

/**
 * Calls back once with the body, or with `too-large`; not at all when the client goes away before.
 * What is too large is read to its end, unkept: a client that is still sending would else see a
 * broken connection instead of the answer.
 */
export const readBody = (
  request: IncomingMessage,
  limitBytes: number,
  done: (body: Buffer | 'too-large') => void,
): void => {
  let chunks: Array<Buffer> = []
  let bytes = 0
  request.on('data', (chunk: Buffer) => {
    bytes += chunk.length
    if (bytes <= limitBytes) chunks.push(chunk)
    else chunks = []
  })
  request.on('end', () => {
    if (bytes > limitBytes) done('too-large')
    else done(chunks.length === 1 ? (chunks[0] as Buffer) : Buffer.concat(chunks))
  })
}

/** Uploads stream through. All else is looked into, whatever it calls itself: a call must not slip past. */
export const mayHoldJson = ({ headers }: IncomingMessage): boolean =>
  !/^\s*(?:multipart|audio|image|video)\//i.test(headers['content-type'] ?? '')
