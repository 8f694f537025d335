import type { Leases } from './leases.ts'

/** A scope, which can be told that a person is being served by another process. */
export interface ForegroundSink {
  readonly setForeground: (active: boolean) => void
}

/**
 * Delays the auxiliaries of `scopes` while a process that shares `leases` serves a person. Each auxiliary is
 * delayed for at most its scope's `policy.maxDeferralMs`. A restored scope may remember a foreground that is
 * over, so every scope is told at once. Returns a function that stops this and lets the auxiliaries go.
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
