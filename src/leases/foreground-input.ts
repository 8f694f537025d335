import type { Leases } from './leases.ts'

/** What can be told that a person is being served elsewhere: a scope. */
export interface ForegroundSink {
  readonly setForeground: (active: boolean) => void
}

/**
 * Holds the auxiliaries of `scopes` back while a process that shares `leases` serves a person, each
 * at most as long as its `policy.maxDeferralMs`. A restored scope may remember a foreground that is
 * over, so each is told at once. Answers how to stop, which lets them go.
 */
export const foregroundInput = (scopes: ReadonlyArray<ForegroundSink>, leases: Leases): (() => void) => {
  const tell = (active: boolean) => {
    for (const scope of scopes) scope.setForeground(active)
  }
  const stop = leases.watch(tell)
  return () => {
    stop()
    tell(false)
  }
}
