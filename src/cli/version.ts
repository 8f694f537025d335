/** The version of this package, from its manifest: two folders up from the sources, three from the build. */
import { readFileSync } from 'node:fs'

const manifestAt = (path: string): { readonly name?: string; readonly version?: string } => {
  try {
    return JSON.parse(readFileSync(new URL(path, import.meta.url), 'utf8'))
  } catch {
    return {}
  }
}

export const version =
  ['../../package.json', '../../../package.json'].map(manifestAt).find(({ name }) => name === 'rightofway')
    ?.version ?? 'unknown'
