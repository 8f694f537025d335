/**
 * Proxies on the way to the providers, as the environment names them. Node's own agents use them: they
 * keep what the transport has to know, whether a request has left this machine.
 */
import { InvalidInput } from '../../../machines/index.ts'

/** Of `process.env`, what says which proxies are used. */
export type ProxyEnvironment = Readonly<Record<string, string | undefined>>

export interface Proxy {
  /** Of the upstreams that it is for. */
  readonly scheme: 'http' | 'https'
  /** Without credentials. */
  readonly url: string
}

/** A proxy elsewhere cannot reach this machine's own addresses. */
const ownHosts = ['localhost', '127.0.0.1', '::1', '[::1]']

const variable = (environment: ProxyEnvironment, name: string): string | undefined =>
  environment[name.toLowerCase()] || environment[name] || undefined

/** The proxies of an environment. Throws `InvalidInput` for one that is no address; its credentials are not told. */
export const proxiesOf = (environment: ProxyEnvironment): ReadonlyArray<Proxy> =>
  (['http', 'https'] as const).flatMap((scheme) => {
    const name = `${scheme.toUpperCase()}_PROXY`
    const value = variable(environment, name)
    if (value === undefined) return []
    const url = URL.canParse(value) ? new URL(value) : null
    if (url === null || !/^https?:$/.test(url.protocol)) {
      const expected = 'an http or https address of a proxy, such as http://proxy.example:3128'
      throw new InvalidInput([{ field: name, expected, got: 'something else' }])
    }
    return [{ scheme, url: url.origin }]
  })

/** What Node's agents read; undefined where there is no proxy. */
export const agentEnvironment = (
  environment: ProxyEnvironment,
): Readonly<Record<string, string | undefined>> | undefined => {
  if (proxiesOf(environment).length === 0) return undefined
  const without = [variable(environment, 'NO_PROXY') ?? '', ...ownHosts]
    .filter((host) => host !== '')
    .join(',')
  const http = variable(environment, 'HTTP_PROXY')
  const https = variable(environment, 'HTTPS_PROXY')
  return {
    ...(http === undefined ? {} : { HTTP_PROXY: http }),
    ...(https === undefined ? {} : { HTTPS_PROXY: https }),
    NO_PROXY: without,
  }
}

/** Whether this Node's agents know proxies: since 24.5. */
export const knowsProxies = (version: string): boolean => {
  const [major = 0, minor = 0] = version.replace(/^v/, '').split('.').map(Number)
  return major > 24 || (major === 24 && minor >= 5)
}
