/**
 * Pacing: a class that the provider refused backs off alone, exponentially, and one call of it
 * (the probe) finds out whether the provider has recovered. Jitter comes from a hash of the
 * scope's own numbers, so that the same history paces the same way everywhere.
 */
export interface Pace {
  /** Bursts refused in a row. */
  readonly refusals: number
  /** Epoch milliseconds until which nothing of the class is dispatched. */
  readonly pausedUntilMs: number
  /** Refusals of calls dispatched before this are the same burst, and late: they change nothing. */
  readonly epochMs: number
  /** The one call that is out after a pause; null when none is. */
  readonly probe: string | null
  /** First refusal of the present row, epoch milliseconds. */
  readonly sinceMs: number
  /** How long rows of refusals have lasted until a call was accepted, milliseconds, smoothed; 0 before the first. */
  readonly spanMs: number
}

export const steady: Pace = { refusals: 0, pausedUntilMs: 0, epochMs: 0, probe: null, sinceMs: 0, spanMs: 0 }

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

/** After a refusal of a call that was dispatched at `dispatchedAtMs`. `statedMs` is what the provider asked for. */
export const refused = (
  pace: Pace,
  bounds: PaceBounds,
  {
    atMs,
    dispatchedAtMs,
    statedMs,
    salt,
  }: { atMs: number; dispatchedAtMs: number; statedMs: number | null; salt: number },
): Pace => {
  const statedUntilMs = statedMs === null ? 0 : atMs + statedMs
  // One burst counts once: what left before the last refusal says nothing new, but a stated wait is still a fact.
  if (dispatchedAtMs < pace.epochMs) {
    return { ...pace, pausedUntilMs: Math.max(pace.pausedUntilMs, statedUntilMs) }
  }
  const refusals = pace.refusals + 1
  const usualMs = Math.min(pace.spanMs * (refusals === 1 ? firstShare : laterShare), bounds.pacingMaxMs)
  const pauseMs = Math.max(backoffMs(bounds, refusals, salt), Math.ceil(usualMs))
  const pausedUntilMs = Math.max(pace.pausedUntilMs, statedUntilMs, atMs + pauseMs)
  const sinceMs = refusals === 1 ? atMs : pace.sinceMs
  return { ...pace, refusals, pausedUntilMs, epochMs: atMs, probe: null, sinceMs }
}

/** An acceptance ends the backoff at once, unless it is of a call that left before the last refusal. */
export const accepted = (pace: Pace, dispatchedAtMs: number): Pace => {
  if (pace.refusals === 0 || dispatchedAtMs < pace.epochMs) return pace
  const lastedMs = dispatchedAtMs - pace.sinceMs
  const spanMs =
    pace.spanMs === 0 ? lastedMs : Math.round(pace.spanMs * (1 - smoothing) + lastedMs * smoothing)
  return { ...steady, epochMs: pace.epochMs, spanMs }
}

/** Whether a call of the class may be dispatched, and whether it is the probe. */
export const paceAllows = (pace: Pace, atMs: number): 'go' | 'probe' | 'wait' => {
  if (pace.refusals === 0) return 'go'
  if (atMs < pace.pausedUntilMs) return 'wait'
  return pace.probe === null ? 'probe' : 'wait'
}
