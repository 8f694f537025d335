/** Looks after a call that waits, now and then: whether its wait is hopeless by now, and that its connection does not look dead. */
import type { Clock } from '../../clock.ts'

export interface Lookout {
  /** Begins to look, or begins anew. */
  readonly start: () => void
  readonly stop: () => void
}

/** `look` is called every `everyMs` until it answers that nothing is left to look after. */
export const makeLookout = (clock: Clock, everyMs: number, look: () => boolean): Lookout => {
  let cancel: (() => void) | null = null
  const stop = (): void => {
    cancel?.()
    cancel = null
  }
  const start = (): void => {
    stop()
    cancel = clock.after(everyMs, () => {
      cancel = null
      if (look()) start()
    })
  }
  return { start, stop }
}
