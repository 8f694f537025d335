/** Runs tests of the sources over the build of an installed package: RIGHTOFWAY_INSTALLED is its folder. */
import { dirname, join, relative, resolve } from 'node:path'
import { defineConfig, type Plugin } from 'vitest/config'

const root = join(import.meta.dirname, '../..')
const installed = process.env['RIGHTOFWAY_INSTALLED'] ?? root

const builtSources: Plugin = {
  name: 'built sources',
  enforce: 'pre',
  resolveId: (source, importer) => {
    if (!source.startsWith('.') || importer === undefined) return null
    const inside = relative(root, resolve(dirname(importer), source))
    if (!/^(?:src|machines)[\\/]/.test(inside)) return null
    return { id: join(installed, 'dist', inside.replace(/\.ts$/, '.js')), external: true }
  },
}

export default defineConfig({
  root,
  plugins: [builtSources],
  test: { environment: 'node', include: ['test/**/*.test.ts'], maxWorkers: 1, testTimeout: 60_000 },
})
