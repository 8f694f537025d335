import { type Bucket, type BucketShape, draw, fullAtMs, fullBucket, holdsAtMs, levelAt } from './bucket.ts'
import type { LimitRule, Statement } from './rule.ts'

export const chargedAt = ['acceptance', 'completion'] as const

/**
 * Input tokens per minute as a token bucket, the documented form of Anthropic's ITPM: the estimate
 * is charged at acceptance and corrected when the call ends. Charged at completion, a call that the
 * level holds is let in and costs nothing until it ends, so that calls in flight together can put the
 * bucket in debt.
 */
export const tokenBucket = (options: {
  /** Refill, input tokens per minute. */
  readonly inputTokensPerMinute: number
  /** Largest burst; default one minute's refill. A larger call is never accepted. */
  readonly burstInputTokens?: number
  /** Default at acceptance. */
  readonly chargedAt?: (typeof chargedAt)[number]
  /** Whether a request that fails keeps what it took. Default false. */
  readonly failuresCharge?: boolean
  readonly states?: Statement
}): LimitRule<Bucket> => {
  const shape: BucketShape = {
    perMinute: options.inputTokensPerMinute,
    capacity: options.burstInputTokens ?? options.inputTokensPerMinute,
  }
  const late = options.chargedAt === 'completion'
  const states = options.states ?? 'retry-after'
  return {
    name: 'token-bucket',
    states,
    initial: () => fullBucket(shape),
    advance: (bucket) => bucket,
    check: (bucket, { atMs, inputTokens }) => {
      const level = levelAt(shape, bucket, atMs)
      if (inputTokens <= level) {
        return { accepted: true, state: late ? bucket : draw(shape, bucket, atMs, inputTokens) }
      }
      const holdsAt = holdsAtMs(shape, bucket, atMs, inputTokens)
      return {
        accepted: false,
        state: bucket,
        refusal: {
          rule: 'token-bucket',
          kind: 'input-tokens-per-minute',
          limit: shape.perMinute,
          used: Math.max(0, shape.capacity - level),
          requested: inputTokens,
          ...(states === 'none' ? {} : { currentLimit: shape.perMinute }),
          retryAfterMs: states === 'retry-after' && holdsAt !== null ? holdsAt - atMs : null,
          resetAtMs: fullAtMs(shape, bucket, atMs),
          permanent: holdsAt === null,
        },
      }
    },
    complete: (bucket, { atMs, inputTokens, actualInputTokens, failed }) => {
      const kept = failed && options.failuresCharge !== true ? 0 : actualInputTokens
      const more = late ? kept : kept - inputTokens
      return more === 0 ? bucket : draw(shape, bucket, atMs, more)
    },
    headers: (bucket, atMs) =>
      states === 'none'
        ? []
        : [
            {
              dimension: 'input-tokens-per-minute',
              limit: shape.perMinute,
              remaining: Math.max(0, levelAt(shape, bucket, atMs)),
              resetAtMs: fullAtMs(shape, bucket, atMs),
            },
          ],
    ceiling: (bucket, atMs) => Math.max(0, levelAt(shape, bucket, atMs)),
    acceptsAtMs: (bucket, { atMs, inputTokens }) => holdsAtMs(shape, bucket, atMs, inputTokens),
  }
}
