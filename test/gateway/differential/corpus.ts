/** Requests that two servers may read differently, as bytes. */

export interface Input {
  readonly name: string
  /** The whole of what is sent; `{type}` stands for a content type, `{base}` for the path of the upstream. */
  readonly bytes: string
}

const request = (start: string, fields: ReadonlyArray<string>, body = ''): string =>
  `${[start, 'Host: 127.0.0.1', 'X-Api-Key: k', 'Content-Type: {type}', ...fields].join('\r\n')}\r\n\r\n${body}`

const post = 'POST {base}/v1/x HTTP/1.1'
const hidden = 'GET {base}/smuggled HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n'
const chunked = '5\r\nhello\r\n0\r\n\r\n'
const close = 'Connection: close'

export const inputs: ReadonlyArray<Input> = [
  { name: 'plain', bytes: request(post, [close, 'Content-Length: 5'], 'hello') },
  { name: 'chunked', bytes: request(post, [close, 'Transfer-Encoding: chunked'], chunked) },
  {
    name: 'chunked in small pieces',
    bytes: request(post, [close, 'Transfer-Encoding: chunked'], '1\r\nh\r\n4\r\nello\r\n0\r\n\r\n'),
  },
  {
    name: 'chunk extensions',
    bytes: request(post, [close, 'Transfer-Encoding: chunked'], '5;a=b\r\nhello\r\n0\r\n\r\n'),
  },
  {
    name: 'trailers',
    bytes: request(post, [close, 'Transfer-Encoding: chunked'], '5\r\nhello\r\n0\r\nX-T: 1\r\n\r\n'),
  },
  { name: 'no body', bytes: request('GET {base}/v1/x HTTP/1.1', [close]) },
  { name: 'an empty body', bytes: request(post, [close, 'Content-Length: 0']) },
  { name: 'HEAD', bytes: request('HEAD {base}/v1/x HTTP/1.1', [close]) },
  {
    name: 'DELETE with a body',
    bytes: request('DELETE {base}/v1/x HTTP/1.1', [close, 'Content-Length: 5'], 'hello'),
  },
  {
    name: 'GET with a chunked body',
    bytes: request('GET {base}/v1/x HTTP/1.1', [close, 'Transfer-Encoding: chunked'], chunked),
  },
  {
    name: 'a query',
    bytes: request('POST {base}/v1/x?a=%2F&b=c HTTP/1.1', [close, 'Content-Length: 5'], 'hello'),
  },
  {
    name: 'two requests in one packet',
    bytes:
      request(post, ['Content-Length: 5'], 'hello') + request(post, [close, 'Content-Length: 5'], 'world'),
  },
  { name: 'expect 100', bytes: request(post, [close, 'Expect: 100-continue', 'Content-Length: 5'], 'hello') },
  {
    name: 'fields of this hop',
    bytes: request(
      post,
      ['Connection: close, X-Hop', 'X-Hop: 1', 'Keep-Alive: timeout=5', 'Content-Length: 5'],
      'hello',
    ),
  },
  {
    name: 'length and chunks',
    bytes: request(post, ['Content-Length: 5', 'Transfer-Encoding: chunked'], `0\r\n\r\n${hidden}`),
  },
  {
    name: 'chunks and length',
    bytes: request(post, ['Transfer-Encoding: chunked', 'Content-Length: 6'], `0\r\n\r\n${hidden}`),
  },
  { name: 'two lengths', bytes: request(post, ['Content-Length: 0', 'Content-Length: 5'], hidden) },
  {
    name: 'two equal lengths',
    bytes: request(post, ['Content-Length: 5', 'Content-Length: 5'], `hello${hidden}`),
  },
  { name: 'a list of lengths', bytes: request(post, ['Content-Length: 5, 5'], `hello${hidden}`) },
  { name: 'a length with a sign', bytes: request(post, ['Content-Length: +0'], hidden) },
  { name: 'a negative length', bytes: request(post, ['Content-Length: -1'], hidden) },
  { name: 'a hexadecimal length', bytes: request(post, ['Content-Length: 0x0'], hidden) },
  { name: 'an endless length', bytes: request(post, ['Content-Length: 99999999999999999999'], hidden) },
  {
    name: 'a blank before the colon',
    bytes: request(post, ['Transfer-Encoding : chunked', 'Content-Length: 5'], `0\r\n\r\n${hidden}`),
  },
  { name: 'an unknown coding', bytes: request(post, ['Transfer-Encoding: xchunked'], `0\r\n\r\n${hidden}`) },
  {
    name: 'chunked is not the last coding',
    bytes: request(post, ['Transfer-Encoding: chunked, identity'], `0\r\n\r\n${hidden}`),
  },
  {
    name: 'two codings',
    bytes: request(post, ['Transfer-Encoding: chunked', 'Transfer-Encoding: identity'], `0\r\n\r\n${hidden}`),
  },
  {
    name: 'a coding behind a vertical tab',
    bytes: request(post, ['Transfer-Encoding: \x0bchunked'], `0\r\n\r\n${hidden}`),
  },
  {
    name: 'a folded coding',
    bytes: request(post, ['Transfer-Encoding:', ' chunked', 'Content-Length: 5'], `0\r\n\r\n${hidden}`),
  },
  { name: 'a folded field', bytes: request(post, ['X-A: b', '\tc', 'Content-Length: 0'], hidden) },
  {
    name: 'a line end inside a value',
    bytes: request(post, ['X-A: b\nTransfer-Encoding: chunked', 'Content-Length: 5'], `0\r\n\r\n${hidden}`),
  },
  {
    name: 'a carriage return inside a value',
    bytes: request(post, ['X-A: b\rX-B: c', 'Content-Length: 0'], hidden),
  },
  { name: 'a NUL inside a value', bytes: request(post, ['X-A: b\0c', 'Content-Length: 0'], hidden) },
  { name: 'a field without a name', bytes: request(post, [': b', 'Content-Length: 0'], hidden) },
  { name: 'a field without a colon', bytes: request(post, ['X-A', 'Content-Length: 0'], hidden) },
  {
    name: 'a chunk of a negative size',
    bytes: request(post, ['Transfer-Encoding: chunked'], `-1\r\n${hidden}`),
  },
  {
    name: 'a chunk of an endless size',
    bytes: request(post, ['Transfer-Encoding: chunked'], `fffffffffffffffff\r\n${hidden}`),
  },
  {
    name: 'a chunk size with a blank',
    bytes: request(post, ['Transfer-Encoding: chunked'], `0 \r\n\r\n${hidden}`),
  },
  {
    name: 'a chunk without its end',
    bytes: request(post, ['Transfer-Encoding: chunked'], `5\r\nhelloX\r\n0\r\n\r\n${hidden}`),
  },
  {
    name: 'a chunk size of nothing',
    bytes: request(post, ['Transfer-Encoding: chunked'], `\r\n\r\n${hidden}`),
  },
  {
    name: 'a length that is of this hop',
    bytes: request(post, ['Connection: content-length', 'Content-Length: 5'], `hello${hidden}`),
  },
  {
    name: 'a host that is of this hop',
    bytes: request(post, ['Connection: close, host', 'Content-Length: 5'], 'hello'),
  },
  { name: 'two hosts', bytes: request(post, [close, 'Host: other', 'Content-Length: 5'], 'hello') },
  {
    name: 'no host',
    bytes: request(post, [close, 'Content-Length: 5'], 'hello').replace('Host: 127.0.0.1\r\n', ''),
  },
  {
    name: 'a host with a path',
    bytes: request(post, [close, 'Content-Length: 5'], 'hello').replace('Host: 127.0.0.1', 'Host: a/b'),
  },
  {
    name: 'an absolute target',
    bytes: request('POST http://127.0.0.1{base}/v1/x HTTP/1.1', [close, 'Content-Length: 5'], 'hello'),
  },
  {
    name: 'a blank in the target',
    bytes: request('POST {base}/v1/x y HTTP/1.1', [close, 'Content-Length: 0']),
  },
  {
    name: 'a target that climbs',
    bytes: request('POST {base}/../smuggled HTTP/1.1', [close, 'Content-Length: 0']),
  },
  {
    name: 'a target that climbs in code',
    bytes: request('POST {base}/v1/%2e%2e/%2e%2e/smuggled HTTP/1.1', [close, 'Content-Length: 0']),
  },
  { name: 'an unknown version', bytes: request('POST {base}/v1/x HTTP/3.9', [close, 'Content-Length: 0']) },
  { name: 'no version', bytes: 'GET {base}/smuggled\r\n\r\n' },
  {
    name: 'a method in small letters',
    bytes: request('post {base}/v1/x HTTP/1.1', [close, 'Content-Length: 0']),
  },
  { name: 'CONNECT', bytes: request('CONNECT 127.0.0.1:80 HTTP/1.1', [close]) },
  { name: 'TRACE', bytes: request('TRACE {base}/v1/x HTTP/1.1', [close]) },
  {
    name: 'a coding in HTTP/1.0',
    bytes: request('POST {base}/v1/x HTTP/1.0', ['Transfer-Encoding: chunked'], `0\r\n\r\n${hidden}`),
  },
  {
    name: 'a wish for h2c',
    bytes: request(
      post,
      [
        'Connection: Upgrade, HTTP2-Settings',
        'Upgrade: h2c',
        'HTTP2-Settings: AAMAAABkAAQAAP__',
        'Content-Length: 5',
      ],
      'hello',
    ),
  },
]

/** Small bodies that a proxy reads, and uploads that it streams. */
export const types = ['application/json', 'multipart/form-data; boundary=x'] as const

export const bytesOf = ({ bytes }: Input, type: string, base: string): string =>
  bytes.replaceAll('{type}', type).replaceAll('{base}', base)
