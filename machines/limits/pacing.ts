/**
 * Pacing: a class that the provider refused backs off alone, exponentially, and comes back through
 * a window, as a TCP sender does (RFC 5681: slow start): one call, the half-open probe, then one
 * more with every acceptance, so that an open gate never sends a whole backlog into a limit.
 * Jitter comes from a hash of the scope's own numbers: the same history paces the same way everywhere.
 */
export interface Pace {
  /** Bursts refused in a row. */
  readonly refusals: number
  /** Epoch milliseconds until which nothing of the class is dispatched. */
  readonly pausedUntilMs: number
  /** Refusals of calls dispatched up to this are the same burst, and late: they change nothing. */
  readonly epochMs: number
  /** Calls of the class that may be out and not accepted yet; null when that is not limited. */
  readonly window: number | null
  /** Calls that are, of those dispatched under a window. */
  readonly out: number
  /** First refusal of the present row, epoch milliseconds. */
  readonly sinceMs: number
  /** How long rows of refusals have lasted until a call was accepted, milliseconds, smoothed; 0 before the first. */
  readonly spanMs: number
}

export const steady: Pace = {
  refusals: 0,
  pausedUntilMs: 0,
  epochMs: 0,
  window: null,
  out: 0,
  sinceMs: 0,
  spanMs: 0,
}

/** A window that has grown so wide limits nothing any more. */
const widestWindow = 64

/** The first pause of a row lasts so much of what rows usually take: the backoff need not find it out each time. */
const firstShare = 0.75
/** Later pauses are at least so much of it. */
const laterShare = 0.2
/** Weight of the newest span. */
const smoothing = 0.3

export interface PaceBounds {
  readonly pacingBaseMs: number
  readonly pacingMaxMs: number
}

/** In [0.5, 1): a 32-bit mix (Murmur3's finalizer) of the salt. */
const jitter = (salt: number): number => {
  let hash = salt | 0
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b)
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35)
  return 0.5 + ((hash ^ (hash >>> 16)) >>> 0) / 2 ** 33
}

/** min(base * 2^(n-1), max), jittered. The exponent is bounded so that a long outage never overflows. */
export const backoffMs = (bounds: PaceBounds, refusals: number, salt: number): number =>
  Math.ceil(
    Math.min(bounds.pacingBaseMs * 2 ** Math.min(refusals - 1, 40), bounds.pacingMaxMs) * jitter(salt),
  )

export interface PaceRefusal {
  readonly atMs: number
  readonly dispatchedAtMs: number
  readonly salt: number
}

/** After a refusal. A wait that the provider states holds the whole scope, not the class. */
export const refused = (pace: Pace, bounds: PaceBounds, refusal: PaceRefusal): Pace => {
  const { atMs, dispatchedAtMs, salt } = refusal
  // One burst counts once: what left up to the last refusal says nothing new.
  if (pace.epochMs > 0 && dispatchedAtMs <= pace.epochMs) return pace
  const refusals = pace.refusals + 1
  const usualMs = Math.min(pace.spanMs * (refusals === 1 ? firstShare : laterShare), bounds.pacingMaxMs)
  const pauseMs = Math.max(backoffMs(bounds, refusals, salt), Math.ceil(usualMs))
  const pausedUntilMs = Math.max(pace.pausedUntilMs, atMs + pauseMs)
  const sinceMs = refusals === 1 ? atMs : pace.sinceMs
  return { ...pace, refusals, pausedUntilMs, epochMs: atMs, window: 1, sinceMs }
}

/** An acceptance ends the backoff at once and widens the window, unless it is of a call that left before the last refusal. */
export const accepted = (pace: Pace, dispatchedAtMs: number): Pace => {
  if (pace.window === null || dispatchedAtMs <= pace.epochMs) return pace
  const window = pace.window >= widestWindow ? null : pace.window + 1
  if (pace.refusals === 0) return { ...pace, window }
  const lastedMs = dispatchedAtMs - pace.sinceMs
  const spanMs =
    pace.spanMs === 0 ? lastedMs : Math.round(pace.spanMs * (1 - smoothing) + lastedMs * smoothing)
  return { ...pace, refusals: 0, window, spanMs }
}

/** A call of the class was dispatched under a window (1), or is no longer out (-1). */
export const counted = (pace: Pace, change: 1 | -1): Pace => ({
  ...pace,
  out: Math.max(0, pace.out + change),
})

/** Longest pause while auxiliaries lift a ceiling for a primary: only their refusals show the ceiling's height. */
const warmPauseMs = 1_500

/** When the class may go on in a warm-up, epoch milliseconds. */
export const warmFromMs = (pace: Pace): number =>
  pace.refusals === 0 ? 0 : Math.min(pace.pausedUntilMs, pace.epochMs + warmPauseMs)

/** Whether a call of the class may be dispatched. */
export const paceAllows = (pace: Pace, atMs: number): boolean =>
  pace.window === null || ((pace.refusals === 0 || atMs >= pace.pausedUntilMs) && pace.out < pace.window)
