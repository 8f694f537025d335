/** The scenarios that the package ships, by name. They stand with the sources, also in the installed package. */
import { existsSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

export interface Shipped {
  /** Null when no scenario has the name. */
  readonly path: string | null
  /** All names, in order. */
  readonly names: ReadonlyArray<string>
}

/** Beside the sources, and from the build. */
const folders = ['../scenarios', '../../../../src/simulation/scenarios'].map((path) =>
  fileURLToPath(new URL(path, import.meta.url)),
)

export const shippedScenario = (name: string): Shipped => {
  const folder = folders.find((path) => existsSync(path))
  const names = (folder === undefined ? [] : readdirSync(folder))
    .filter((file) => file.endsWith('.json') && !file.endsWith('.schema.json'))
    .map((file) => file.slice(0, -'.json'.length))
    .sort()
  return { path: folder !== undefined && names.includes(name) ? join(folder, `${name}.json`) : null, names }
}
