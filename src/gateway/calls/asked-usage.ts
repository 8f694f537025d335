/** Asks a chat stream for its usage where the client did not: only so does the stream say what it took. */
import { memberAt } from '../identity/members.ts'

const streamPath = /\/completions$/
const option = Buffer.from('"include_usage":true')
const isTrue = (body: Buffer, at: number | null): boolean =>
  at !== null && body.toString('latin1', at, at + 4) === 'true'

/**
 * `body` with `stream_options.include_usage`, for a stream of chat or text completions. The same buffer
 * when it is none, when the client asks for usage itself, or when `stream_options` is neither an object nor null.
 */
export const withUsageAsked = (path: string, body: Buffer): Buffer => {
  if (!streamPath.test(path)) return body
  if (!isTrue(body, memberAt(body, 'stream'))) return body
  const optionsAt = memberAt(body, 'stream_options')
  if (optionsAt === null) {
    const open = body.indexOf('{') + 1
    return spliced(
      body,
      open,
      open,
      Buffer.concat([Buffer.from('"stream_options":{'), option, Buffer.from('},')]),
    )
  }
  if (body.toString('latin1', optionsAt, optionsAt + 4) === 'null')
    return spliced(
      body,
      optionsAt,
      optionsAt + 4,
      Buffer.concat([Buffer.from('{'), option, Buffer.from('}')]),
    )
  return body[optionsAt] === 0x7b ? inOptions(body, optionsAt) : body
}

const inOptions = (body: Buffer, optionsAt: number): Buffer => {
  const options = body.subarray(optionsAt)
  const statedAt = memberAt(options, 'include_usage')
  if (isTrue(options, statedAt)) return body
  if (statedAt !== null) {
    const word = /^(?:false|null)/.exec(options.toString('latin1', statedAt, statedAt + 5))?.[0]
    if (word === undefined) return body
    const from = optionsAt + statedAt
    return spliced(body, from, from + word.length, Buffer.from('true'))
  }
  const isEmpty = /^\{\s*\}/.test(options.toString('latin1', 0, 64))
  return spliced(
    body,
    optionsAt + 1,
    optionsAt + 1,
    isEmpty ? option : Buffer.concat([option, Buffer.from(',')]),
  )
}

const spliced = (body: Buffer, from: number, to: number, put: Buffer): Buffer =>
  Buffer.concat([body.subarray(0, from), put, body.subarray(to)])
