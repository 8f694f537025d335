import { createHmac } from 'node:crypto'
import { InvalidInput } from '../../machines/index.ts'
import { shown } from '../../machines/model/invalid.ts'

/** What shares one admission: a provider, a credential (its fingerprint, never the key) and a model; or a free name. */
export type ScopeKey =
  | string
  | {
      readonly provider: string
      /** `fingerprint(key)`. */
      readonly credential: string
      /** Left out: all models of the credential share the scope. */
      readonly model?: string
    }

const part = (field: string, value: unknown): string => {
  if (typeof value !== 'string' || value.length === 0 || value.length > 200 || /[\p{Cc}/]/u.test(value)) {
    throw new InvalidInput([
      {
        field: `scope.${field}`,
        expected: '1 to 200 printable characters without "/"',
        got: shown(value),
      },
    ])
  }
  return value
}

/** `provider/credential/model`, or the free name as it is. Throws `InvalidInput`. */
export const scopeName = (key: ScopeKey): string => {
  if (typeof key === 'string') {
    if (key.length === 0 || key.length > 600 || /\p{Cc}/u.test(key)) {
      throw new InvalidInput([{ field: 'scope', expected: '1 to 600 printable characters', got: shown(key) }])
    }
    return key
  }
  const names = [part('provider', key.provider), part('credential', key.credential)]
  return [...names, key.model === undefined ? '*' : part('model', key.model.replaceAll('/', ':'))].join('/')
}

/** The parts of a name that tell which scopes evidence spreads to; null for a free name. */
export const scopeParts = (
  name: string,
): { readonly provider: string; readonly credential: string } | null => {
  const [provider, credential, model] = name.split('/')
  return provider === undefined || credential === undefined || model === undefined
    ? null
    : { provider, credential }
}

/**
 * Tells credentials apart without keeping them: the first 16 hexadecimal digits of an HMAC-SHA-256.
 * `secret` makes the fingerprint useless outside one installation; the gateway draws its own.
 */
export const fingerprint = (credential: string, secret = 'rightofway'): string =>
  createHmac('sha256', secret).update(credential).digest('hex').slice(0, 16)
