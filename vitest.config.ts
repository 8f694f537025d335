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

/** Proofs that take minutes: `npm run test:full` runs them, and them only. */
const long = ['test/**/*.long.test.ts']

/** What measures time or draws pages: it has the machine to itself, after all the rest. */
const alone = ['test/browser/**/*.test.ts', 'test/bench/**/*.test.ts']

export default defineConfig({
  resolve: { tsconfigPaths: true },
  test: {
    environment: 'node',
    setupFiles: ['test/setup/seed.ts'],
    testTimeout: 30_000,
    hookTimeout: 60_000,
    projects: [
      {
        extends: true,
        test: {
          name: 'side by side',
          include: ['test/**/*.test.ts'],
          exclude: [...configDefaults.exclude, ...alone, ...long],
          maxWorkers: 2,
          sequence: { groupOrder: 0 },
        },
      },
      {
        extends: true,
        test: {
          name: 'alone',
          include: alone,
          exclude: [...configDefaults.exclude, ...long, ...(withBrowser ? [] : ['test/browser/**'])],
          maxWorkers: 1,
          sequence: { groupOrder: 1 },
        },
      },
    ],
  },
})
