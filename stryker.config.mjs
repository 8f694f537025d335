/** @type {import('@stryker-mutator/api/core').PartialStrykerOptions} */
export default {
  mutate: ['machines/**/*.ts'],
  // Stryker rewrites what it finds of these through an API that TypeScript 7 has not.
  ignorePatterns: ['tsconfig*.json', 'dist', 'inspector'],
  testRunner: 'vitest',
  vitest: { configFile: 'test/mutation/vitest.config.ts', related: false, pool: 'threads' },
  coverageAnalysis: 'perTest',
  // What runs when a module loads (schemas, tables of defaults) would cost a run of every test for each mutant.
  ignoreStatic: true,
  concurrency: 2,
  // A loop without end is stopped after so long.
  timeoutMS: 2_000,
  reporters: ['progress', 'clear-text', 'json'],
  clearTextReporter: { reportTests: false, logTests: false },
  jsonReporter: { fileName: 'test-artifacts/mutation.json' },
  // A run goes on from what the last one knew: mutants of files that are unchanged, with their tests, are not run again.
  incremental: true,
  incrementalFile: 'test-artifacts/mutation-known.json',
  thresholds: { high: 95, low: 85, break: 85 },
}
