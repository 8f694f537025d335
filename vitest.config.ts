import { existsSync } from 'node:fs'
import { configDefaults, defineConfig } from 'vitest/config'

const browser = process.env['RIGHTOFWAY_CHROMIUM'] ?? '/usr/bin/chromium'
// A newcomer's machine need not have a browser; one that checks changes must.
const withBrowser = existsSync(browser) || process.env['CI'] === 'true'
if (!withBrowser) {
  console.warn(
    `No Chromium at ${browser}: test/browser is left out; inspector/install-browser.sh installs it.`,
  )
}

export default defineConfig({
  resolve: { conditions: ['source'] },
  ssr: { resolve: { conditions: ['source'] } },
  test: {
    include: ['test/**/*.test.ts'],
    exclude: [...configDefaults.exclude, ...(withBrowser ? [] : ['test/browser/**'])],
    environment: 'node',
    testTimeout: 30_000,
    hookTimeout: 60_000,
  },
})
