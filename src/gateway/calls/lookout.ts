/** Keeps the connection of a waiting call from looking dead. */
import type { Clock } from '../../clock.ts'

export interface Lookout {
  /** Begins to look, or begins anew. */
  readonly start: () => void
  readonly stop: () => void
}

/** `look` is called every `everyMs` until it answers false. */
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
