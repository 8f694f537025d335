import { enableCompileCache } from 'node:module'
import { defineConfig } from 'vitest/config'
import { BaseSequencer, type TestSpecification } from 'vitest/node'

/** Tables before laws: a mutant ends with the first test that fails. */
class TablesFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const isLaw = ({ moduleId }: TestSpecification) => Number(moduleId.includes('/properties/'))
    return files.toSorted((one, other) => isLaw(one) - isLaw(other))
  }
}

process.env['RIGHTOFWAY_PROPERTY_RUNS'] = '25'

// Every mutant loads the modules anew.
enableCompileCache()

/** The tests that pin the core. Those that walk graphs or open hosts are too slow to run for each mutant. */
export default defineConfig({
  resolve: { tsconfigPaths: true },
  test: {
    include: [
      'test/machines/**/*.test.ts',
      'test/edict/quiet-window.test.ts',
      'test/pools/*.test.ts',
      'test/properties/*.test.ts',
    ],
    exclude: [
      'test/machines/statechart/graph.test.ts',
      'test/machines/scheduling/qos-soak.test.ts',
      'test/pools/three-lanes.test.ts',
      'test/machines/limits/defeats.test.ts',
      'test/machines/limits/families.test.ts',
    ],
    setupFiles: ['test/mutation/short-runs.ts'],
    isolate: false,
    // A sandbox is new each time, so a cache in it would be new as well.
    fsModuleCache: false,
    sequence: { sequencer: TablesFirst },
  },
})
