/**
 * The built page, read once and served from memory. It does not leave the machine, so it is not compressed.
 */
import { readdirSync, readFileSync } from 'node:fs'
import { extname, join, relative, sep } from 'node:path'
import { fileURLToPath } from 'node:url'

export interface Asset {
  readonly type: string
  readonly bytes: Buffer
  /** Its name holds a hash of its content, so it never changes. */
  readonly immutable: boolean
}

const types: Readonly<Record<string, string>> = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.svg': 'image/svg+xml',
  '.json': 'application/json',
}

/** Next to the sources, or next to this file in the build. */
const folders = ['../dist/inspector/page', './page'].map((path) =>
  fileURLToPath(new URL(path, import.meta.url)),
)

/** The assets by their path without a leading slash; empty when the page has not been built. */
export const readAssets = (folder?: string): ReadonlyMap<string, Asset> => {
  for (const candidate of folder === undefined ? folders : [folder]) {
    const assets = readFolder(candidate)
    if (assets.has('index.html')) return assets
  }
  return new Map()
}

const readFolder = (folder: string): ReadonlyMap<string, Asset> => {
  const assets = new Map<string, Asset>()
  for (const path of filesIn(folder)) {
    const name = relative(folder, path).split(sep).join('/')
    const bytes = readFileSync(path)
    const type = types[extname(name)]
    if (type === undefined) continue
    assets.set(name, { type, bytes, immutable: name.startsWith('assets/') })
  }
  return assets
}

const filesIn = (folder: string): ReadonlyArray<string> => {
  try {
    return readdirSync(folder, { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile())
      .map((entry) => join(entry.parentPath, entry.name))
  } catch {
    return []
  }
}
