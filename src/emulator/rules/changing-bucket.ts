import { type Bucket, type BucketShape, draw, fullAtMs, fullBucket, holdsAtMs, levelAt } from './bucket.ts'
import { type LimitRule, minuteMs, type Statement } from './rule.ts'

export interface BucketChange {
  /** Start of its validity, ms. */
  readonly atMs: number
  /** Refill, input tokens per minute. */
  readonly inputTokensPerMinute: number
  /** Default one minute's refill. */
  readonly burstInputTokens?: number
}

/**
 * A token bucket whose limit changes at set times: tiers that are raised, shared capacity that shrinks by
 * day, a provider that lowers a limit without notice. The first change is valid from the start. With
 * `everyMs`, the list begins anew after each such period. A level above a new burst is lost.
 */
export const changingBucket = (options: {
  /** Ascending by time, the first at 0. */
  readonly changes: ReadonlyArray<BucketChange>
  /** Default: the last change holds for ever. Later than the last change. */
  readonly everyMs?: number
  readonly states?: Statement
}): LimitRule<Bucket> => {
  const { changes, everyMs } = options
  const states = options.states ?? 'retry-after'
  const shapes = changes.map(
    ({ inputTokensPerMinute, burstInputTokens }): BucketShape => ({
      perMinute: inputTokensPerMinute,
      capacity: burstInputTokens ?? inputTokensPerMinute,
    }),
  )
  const most = Math.max(...shapes.map(({ capacity }) => capacity))
  const slowestFillMs = (most * minuteMs) / Math.min(...shapes.map(({ perMinute }) => perMinute))
  /** The shape at a time, and the time of the next change. */
  const at = (atMs: number): { readonly shape: BucketShape; readonly untilMs: number } => {
    const base = everyMs === undefined ? 0 : Math.floor(atMs / everyMs) * everyMs
    const index = changes.findLastIndex((change) => change.atMs <= atMs - base)
    const next = changes[index + 1]?.atMs ?? everyMs ?? Number.POSITIVE_INFINITY
    return { shape: shapes[index]!, untilMs: base + next }
  }
  const advance = (bucket: Bucket, atMs: number): Bucket => {
    let moved = bucket
    for (;;) {
      const { shape, untilMs } = at(moved.refilledAtMs)
      if (untilMs > atMs) return moved
      const left = draw(shape, moved, untilMs, 0)
      const capacityParts = at(untilMs).shape.capacity * minuteMs
      moved = { levelParts: Math.min(left.levelParts, capacityParts), refilledAtMs: untilMs }
    }
  }
  const whenHolds = (from: Bucket, fromMs: number, units: number): number | null => {
    if (units > most) return null
    let bucket = advance(from, fromMs)
    let atMs = fromMs
    // From one full period after the slowest refill fills the largest bucket, all periods are alike.
    const lastMs = fromMs + 2 * (everyMs ?? changes.at(-1)!.atMs) + slowestFillMs
    for (;;) {
      const { shape, untilMs } = at(atMs)
      const holdsAt = holdsAtMs(shape, bucket, atMs, units)
      if (holdsAt !== null && holdsAt < untilMs) return holdsAt
      if (untilMs > lastMs) return null
      atMs = untilMs
      bucket = advance(bucket, atMs)
    }
  }
  return {
    name: 'changing-bucket',
    states,
    initial: () => fullBucket(shapes[0]!),
    advance,
    check: (earlier, { atMs, inputTokens }) => {
      const bucket = advance(earlier, atMs)
      const { shape } = at(atMs)
      const level = levelAt(shape, bucket, atMs)
      if (inputTokens <= level) return { accepted: true, state: draw(shape, bucket, atMs, inputTokens) }
      const holdsAt = states === 'retry-after' ? whenHolds(bucket, atMs, inputTokens) : null
      return {
        accepted: false,
        state: bucket,
        refusal: {
          rule: 'changing-bucket',
          kind: 'input-tokens-per-minute',
          limit: shape.perMinute,
          used: Math.max(0, shape.capacity - level),
          requested: inputTokens,
          ...(states === 'none' ? {} : { currentLimit: shape.perMinute }),
          retryAfterMs: holdsAt === null ? null : holdsAt - atMs,
          resetAtMs: fullAtMs(shape, bucket, atMs),
          permanent: inputTokens > most,
        },
      }
    },
    complete: (bucket, { atMs, inputTokens, actualInputTokens }) =>
      actualInputTokens === inputTokens
        ? bucket
        : draw(at(atMs).shape, advance(bucket, atMs), atMs, actualInputTokens - inputTokens),
    headers: (earlier, atMs) => {
      if (states === 'none') return []
      const [bucket, { shape }] = [advance(earlier, atMs), at(atMs)]
      return [
        {
          dimension: 'input-tokens-per-minute',
          limit: shape.perMinute,
          remaining: Math.max(0, levelAt(shape, bucket, atMs)),
          resetAtMs: fullAtMs(shape, bucket, atMs),
        },
      ]
    },
    ceiling: (bucket, atMs) => Math.max(0, levelAt(at(atMs).shape, advance(bucket, atMs), atMs)),
    acceptsAtMs: (bucket, { atMs, inputTokens }) => whenHolds(bucket, atMs, inputTokens),
  }
}
