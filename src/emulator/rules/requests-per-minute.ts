import { type Bucket, type BucketShape, draw, fullAtMs, fullBucket, holdsAtMs, levelAt } from './bucket.ts'
import type { LimitRule, Statement } from './rule.ts'

/** Requests per minute as a token bucket that holds one minute of requests. */
export const requestsPerMinute = (options: {
  readonly requestsPerMinute: number
  readonly states?: Statement
}): LimitRule<Bucket> => {
  const shape: BucketShape = { perMinute: options.requestsPerMinute, capacity: options.requestsPerMinute }
  const states = options.states ?? 'retry-after'
  return {
    name: 'requests-per-minute',
    states,
    initial: () => fullBucket(shape),
    advance: (bucket) => bucket,
    check: (bucket, { atMs }) => {
      const level = levelAt(shape, bucket, atMs)
      if (level >= 1) return { accepted: true, state: draw(shape, bucket, atMs, 1) }
      const holdsAt = holdsAtMs(shape, bucket, atMs, 1)
      return {
        accepted: false,
        state: bucket,
        refusal: {
          rule: 'requests-per-minute',
          kind: 'requests-per-minute',
          limit: shape.perMinute,
          used: shape.capacity - level,
          requested: 1,
          retryAfterMs: states === 'retry-after' && holdsAt !== null ? holdsAt - atMs : null,
          resetAtMs: fullAtMs(shape, bucket, atMs),
          permanent: false,
        },
      }
    },
    complete: (bucket) => bucket,
    headers: (bucket, atMs) =>
      states === 'none'
        ? []
        : [
            {
              dimension: 'requests-per-minute',
              limit: shape.perMinute,
              remaining: Math.max(0, levelAt(shape, bucket, atMs)),
              resetAtMs: fullAtMs(shape, bucket, atMs),
            },
          ],
    ceiling: (bucket, atMs) => (levelAt(shape, bucket, atMs) >= 1 ? Number.POSITIVE_INFINITY : 0),
    acceptsAtMs: (bucket, { atMs }) => holdsAtMs(shape, bucket, atMs, 1),
  }
}
