/** Requests that are signed for another host (AWS Signature Version 4): no proxy can pass them on. */
import type { IncomingHttpHeaders } from 'node:http'

/** The signature covers the host, which is another one at the provider. `query` is without `?`; null when there is none. */
export const isSignedForHost = (headers: IncomingHttpHeaders, query: string | null): boolean => {
  const { authorization = '' } = headers
  if (/^\s*AWS4-/i.test(authorization)) return coversHost(/SignedHeaders=([^,\s]+)/i.exec(authorization)?.[1])
  if (query === null || !/x-amz-signature=/i.test(query)) return false
  const fields = [...new URLSearchParams(query)]
  return coversHost(fields.find(([name]) => name.toLowerCase() === 'x-amz-signedheaders')?.[1])
}

/** A signature that does not say what it covers covers the host: the protocol demands it. */
const coversHost = (signed: string | undefined): boolean =>
  signed === undefined || signed.toLowerCase().split(';').includes('host')
