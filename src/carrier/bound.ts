/** Functions that keep the surroundings in which they were made. */
import { AsyncLocalStorage } from 'node:async_hooks'

/**
 * `fn`, which runs in the surroundings of here wherever it is called from: priority, permit, `withCall`.
 * For pools: they start a task when another one ends, so without it a task runs in the other task's
 * surroundings. `queue.add(bound(() => scope.run(request, send)))`.
 */
export const bound = <Args extends ReadonlyArray<unknown>, A>(
  fn: (...args: Args) => A,
): ((...args: Args) => A) =>
  AsyncLocalStorage.bind(fn as (...args: ReadonlyArray<unknown>) => A) as (...args: Args) => A
