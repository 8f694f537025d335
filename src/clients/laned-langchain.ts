/**
 * Constructor fields that put a chat model of LangChain.js into lanes. LangChain's own caller retries six times by
 * default, and each retry would be a new call: here it does not. No package of LangChain is imported.
 */
import type { LaneHost, LaneScope } from '../host/host.ts'
import type { EffectScope } from '../host/service.ts'
import { type LanedFetchOptions, lanedFetch } from './laned-fetch.ts'

/** Fields for `ChatOpenAI` and the models on its client (`configuration`), and for `ChatAnthropic` (`clientOptions`). */
export interface LangChainLanes {
  readonly maxRetries: 0
  /** The lanes bound how many calls run. A queue of LangChain's own would carry one call's surroundings to another. */
  readonly maxConcurrency: number
  /** Throws every error on as it came, so that no caller retries it whatever `maxRetries` says. */
  readonly onFailedAttempt: (error: unknown) => never
  readonly configuration: { readonly fetch: typeof fetch }
  readonly clientOptions: { readonly fetch: typeof fetch }
}

/**
 * `new ChatOpenAI({ model, ...langChainLanes(scope) })`. A refusal that ends a call is the error of the provider's
 * own SDK (`RateLimitError` of `openai`). Fields under `configuration` or `clientOptions` of your own go beside
 * `fetch`: `configuration: { ...lanes.configuration, baseURL }`. Throws `InvalidInput` as `lanedFetch`.
 */
export const langChainLanes = (
  lanes: LaneScope | LaneHost | EffectScope,
  options: LanedFetchOptions = {},
): LangChainLanes => {
  const laned = lanedFetch(lanes, options)
  return {
    maxRetries: 0,
    maxConcurrency: Number.POSITIVE_INFINITY,
    onFailedAttempt: (error) => {
      throw error
    },
    configuration: { fetch: laned },
    clientOptions: { fetch: laned },
  }
}
