import { defineConfig } from 'vitest/config'

/** The long proofs, one file at a time: they start processes, fill disks and measure. */
export default defineConfig({
  resolve: { tsconfigPaths: true },
  test: {
    environment: 'node',
    setupFiles: ['test/setup/seed.ts'],
    include: ['test/**/*.long.test.ts'],
    maxWorkers: 1,
    testTimeout: 20 * 60_000,
    hookTimeout: 5 * 60_000,
  },
})
