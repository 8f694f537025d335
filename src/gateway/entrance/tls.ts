/** Certificate and key of the gateway, read again when their files change. */
import { readFileSync, statSync } from 'node:fs'
import { InvalidInput } from '../../../machines/index.ts'

export interface TlsFiles {
  /** Paths of PEM files; the certificate's file may hold its chain. */
  readonly cert: string
  readonly key: string
}

export interface TlsKeys {
  readonly cert: Buffer
  readonly key: Buffer
}

/** Throws `InvalidInput` that names the file. */
export const readTls = ({ cert, key }: TlsFiles): TlsKeys => ({
  cert: read('config.tls.cert', cert),
  key: read('config.tls.key', key),
})

const read = (field: string, path: string): Buffer => {
  try {
    return readFileSync(path)
  } catch (error) {
    const got = `${path}: ${error instanceof Error && 'code' in error ? String(error.code) : 'unreadable'}`
    throw new InvalidInput([{ field, expected: 'a PEM file that can be read', got }])
  }
}

/** Renewed certificates come into force within this time, milliseconds. */
const lookEveryMs = 1_000

/** Calls `renewed` with what the files hold each time that both can be read anew. Answers how to stop. */
export const watchTls = (files: TlsFiles, renewed: (keys: TlsKeys) => void): (() => void) => {
  let before = stampOf(files)
  const timer = setInterval(() => {
    const now = stampOf(files)
    if (now === before || now === null) return
    try {
      renewed(readTls(files))
      before = now
    } catch {
      // One of the two is being replaced: the old ones hold, and the next look sees both.
    }
  }, lookEveryMs)
  timer.unref()
  return () => clearInterval(timer)
}

const stampOf = ({ cert, key }: TlsFiles): string | null => {
  try {
    return [cert, key].map((path) => `${statSync(path).mtimeMs} ${statSync(path).ino}`).join(' ')
  } catch {
    return null
  }
}
