/** What HTTP lets a server say around its one answer: interim heads before it, trailers behind it. */
import type { IncomingMessage, ServerResponse } from 'node:http'
import { answerFields, trailerFields } from './forward-headers.ts'
import type { AnswerHead } from './transport.ts'

/** Clients of HTTP/1.0 know no interim answers, and one whose turn on its connection has not come must not see any. */
const mayHear = ({ httpVersion }: IncomingMessage, response: ServerResponse): boolean =>
  httpVersion !== '1.0' && !response.headersSent && !response.destroyed && response.socket !== null

/** Passes an interim answer on, such as 103 with its links. */
export const sendInterim = (request: IncomingMessage, response: ServerResponse, head: AnswerHead): void => {
  if (!mayHear(request, response)) return
  const fields = answerFields(head.rawHeaders, {})
  let text = `HTTP/1.1 ${head.status} ${head.status === 103 ? 'Early Hints' : 'Interim'}\r\n`
  for (let index = 0; index + 1 < fields.length; index += 2)
    text += `${fields[index]}: ${fields[index + 1]}\r\n`
  response.socket?.write(`${text}\r\n`, 'latin1')
}

/** What proxies of HTTP leave in requests. Some of them (nginx before 1.29) take an interim answer for the answer. */
const proxyFields = [
  'via',
  'forwarded',
  'x-forwarded-for',
  'x-forwarded-host',
  'x-forwarded-proto',
  'x-real-ip',
]

/** Says that the call is still wanted and no answer is here yet (102), so that proxies which only carry bytes keep the connection. */
export const sendProcessing = (request: IncomingMessage, response: ServerResponse): void => {
  const isProxied = proxyFields.some((field) => request.headers[field] !== undefined)
  if (!isProxied && mayHear(request, response)) response.writeProcessing()
}

/** Ends an answer, with the trailers of the upstream where there are any. */
export const endWith = (response: ServerResponse, rawTrailers: ReadonlyArray<string>): void => {
  const trailers = trailerFields(rawTrailers)
  if (trailers.length > 0 && response.chunkedEncoding) response.addTrailers(trailers)
  response.end()
}
