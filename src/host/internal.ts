/**
 * The inner parts of a host for the gateway, the clients and the inspector. Users of a host do not reach
 * them.
 */
import type { Kernel } from './kernel.ts'
import type { ScopeRunner } from './scope-runner.ts'

const runners = new WeakMap<object, ScopeRunner>()

/** The runner behind a scope of the Promise face. */
export const runnerOf = (scope: object): ScopeRunner => {
  const runner = runners.get(scope)
  if (runner === undefined)
    throw new TypeError('expected a scope of a host (host.scope(...)), got something else')
  return runner
}

export const keepRunner = (scope: object, runner: ScopeRunner): void => {
  runners.set(scope, runner)
}

const kernels = new WeakMap<object, Kernel>()

/** The kernel behind a host, of either face. */
export const kernelOf = (host: object): Kernel => {
  const kernel = kernels.get(host)
  if (kernel === undefined)
    throw new TypeError('expected a host (openHost or Host.layer), got something else')
  return kernel
}

export const keepKernel = (host: object, kernel: Kernel): void => {
  kernels.set(host, kernel)
}
