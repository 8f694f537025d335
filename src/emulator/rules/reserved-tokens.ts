import { type Bucket, type BucketShape, draw, fullAtMs, fullBucket, holdsAtMs, levelAt } from './bucket.ts'
import type { Completion, LimitCall, LimitRule, Statement } from './rule.ts'

export const countings = ['sum', 'larger'] as const
export const settlements = ['usage', 'none'] as const

/**
 * One limit on input and output together, as OpenAI, Azure, Bedrock and Cerebras have it: what a call may write
 * (`max_tokens`) is taken when it comes, whatever it will write.
 */
export const reservedTokens = (options: {
  /** Refill, tokens per minute; a full bucket holds one minute's. */
  readonly tokensPerMinute: number
  /** Taken as `max_tokens` where a call states none; default 0. */
  readonly defaultMaxTokens?: number
  /** Whether input and `max_tokens` are added up, or the larger of the two counts. Default `sum`. */
  readonly counts?: (typeof countings)[number]
  /** At the end of a call, its real usage replaces the reserved tokens (`usage`), or the reserved tokens stay. Default `usage`. */
  readonly settles?: (typeof settlements)[number]
  /** Under `usage`: how many tokens one token of output counts as. Default 1. */
  readonly outputWeight?: number
  /** Whether a request that fails keeps what it took. Default false. */
  readonly failuresCharge?: boolean
  readonly states?: Statement
}): LimitRule<Bucket> => {
  const { tokensPerMinute, counts = 'sum', settles = 'usage', outputWeight = 1 } = options
  const shape: BucketShape = { perMinute: tokensPerMinute, capacity: tokensPerMinute }
  const states = options.states ?? 'retry-after'
  const together = (input: number, output: number): number =>
    counts === 'sum' ? input + output : Math.max(input, output)
  const reserved = ({ inputTokens, maxOutputTokens }: Omit<LimitCall, 'atMs'>): number =>
    together(inputTokens, maxOutputTokens ?? options.defaultMaxTokens ?? 0)
  const keptOf = (ended: Completion): number => {
    if (ended.failed) return options.failuresCharge === true ? reserved(ended) : 0
    if (settles === 'none') return reserved(ended)
    return together(ended.actualInputTokens, ended.outputTokens * outputWeight)
  }
  return {
    name: 'reserved-tokens',
    states,
    initial: () => fullBucket(shape),
    advance: (bucket) => bucket,
    check: (bucket, call) => {
      const { atMs } = call
      const requested = reserved(call)
      const level = levelAt(shape, bucket, atMs)
      if (requested <= level) return { accepted: true, state: draw(shape, bucket, atMs, requested) }
      const holdsAt = holdsAtMs(shape, bucket, atMs, requested)
      return {
        accepted: false,
        state: bucket,
        refusal: {
          rule: 'reserved-tokens',
          kind: 'input-tokens-per-minute',
          limit: shape.perMinute,
          used: Math.max(0, shape.capacity - level),
          requested,
          ...(states === 'none' ? {} : { currentLimit: shape.perMinute }),
          retryAfterMs: states === 'retry-after' && holdsAt !== null ? holdsAt - atMs : null,
          resetAtMs: fullAtMs(shape, bucket, atMs),
          permanent: holdsAt === null,
        },
      }
    },
    complete: (bucket, ended) => {
      const more = keptOf(ended) - reserved(ended)
      return more === 0 ? bucket : draw(shape, bucket, ended.atMs, more)
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
    // Of a call that may write nothing.
    ceiling: (bucket, atMs) => Math.max(0, levelAt(shape, bucket, atMs)),
    acceptsAtMs: (bucket, call) => holdsAtMs(shape, bucket, call.atMs, reserved(call)),
  }
}
