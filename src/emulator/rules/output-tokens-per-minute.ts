import { type Bucket, type BucketShape, draw, fullAtMs, fullBucket, holdsAtMs, levelAt } from './bucket.ts'
import type { LimitRule, Statement } from './rule.ts'

/**
 * Output tokens per minute as a token bucket that is charged when the output exists. `max_tokens` costs
 * nothing at the door, so calls in flight together can put the bucket in debt, as they can at Anthropic. A
 * call is accepted while at least one token is held.
 */
export const outputTokensPerMinute = (options: {
  readonly outputTokensPerMinute: number
  readonly states?: Statement
}): LimitRule<Bucket> => {
  const shape: BucketShape = {
    perMinute: options.outputTokensPerMinute,
    capacity: options.outputTokensPerMinute,
  }
  const states = options.states ?? 'retry-after'
  return {
    name: 'output-tokens-per-minute',
    states,
    initial: () => fullBucket(shape),
    advance: (bucket) => bucket,
    check: (bucket, { atMs }) => {
      const level = levelAt(shape, bucket, atMs)
      if (level >= 1) return { accepted: true, state: bucket }
      const holdsAt = holdsAtMs(shape, bucket, atMs, 1)
      return {
        accepted: false,
        state: bucket,
        refusal: {
          rule: 'output-tokens-per-minute',
          kind: 'output-tokens-per-minute',
          limit: shape.perMinute,
          used: shape.capacity - level,
          // The door asks for one token; the output is charged when it exists.
          requested: 1,
          retryAfterMs: states === 'retry-after' && holdsAt !== null ? holdsAt - atMs : null,
          resetAtMs: fullAtMs(shape, bucket, atMs),
          permanent: false,
        },
      }
    },
    complete: (bucket, { atMs, outputTokens }) =>
      outputTokens === 0 ? bucket : draw(shape, bucket, atMs, outputTokens),
    headers: (bucket, atMs) =>
      states === 'none'
        ? []
        : [
            {
              dimension: 'output-tokens-per-minute',
              limit: shape.perMinute,
              remaining: Math.max(0, levelAt(shape, bucket, atMs)),
              resetAtMs: fullAtMs(shape, bucket, atMs),
            },
          ],
    ceiling: (bucket, atMs) => (levelAt(shape, bucket, atMs) >= 1 ? Number.POSITIVE_INFINITY : 0),
    acceptsAtMs: (bucket, { atMs }) => holdsAtMs(shape, bucket, atMs, 1),
  }
}
