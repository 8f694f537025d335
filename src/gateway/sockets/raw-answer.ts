/** Answers without `node:http`, on a connection that asked to leave it. */
import { STATUS_CODES } from 'node:http'
import type { Duplex } from 'node:stream'
import { answerFields } from '../passage/forward-headers.ts'
import { documentOf, type Problem } from '../problem/problem.ts'

/** A problem on a connection that is no `node:http` answer; then the connection ends. */
export const refuse = (socket: Duplex, problem: Problem): void => {
  const { status, retryAfterS } = problem
  const fields = ['content-type', 'application/problem+json']
  if (retryAfterS !== null) fields.push('retry-after', String(retryAfterS))
  if (status === 426) fields.push('upgrade', 'HTTP/1.1')
  write(socket, status, fields, Buffer.from(documentOf(problem)))
}

export const passOn = (
  socket: Duplex,
  status: number,
  rawHeaders: ReadonlyArray<string>,
  body: Buffer,
): void => {
  const fields = answerFields(rawHeaders, {})
  const kept = fields.filter((_, index) => !/^content-length$/i.test(fields[index - (index % 2)] as string))
  write(socket, status, kept, body)
}

const write = (socket: Duplex, status: number, fields: ReadonlyArray<string>, body: Buffer): void => {
  let text = `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? 'Unknown'}\r\n`
  for (let index = 0; index + 1 < fields.length; index += 2)
    text += `${fields[index]}: ${fields[index + 1]}\r\n`
  text += `content-length: ${body.length}\r\nconnection: close\r\n\r\n`
  socket.end(Buffer.concat([Buffer.from(text, 'latin1'), body]))
}
