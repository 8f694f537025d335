/**
 * A language model of the AI SDK that asks for a permit before each of its calls. The SDK's own
 * retries are off, whatever `maxRetries` says: each would be a new call. No SDK is imported.
 */
import { admissionProblem } from '../gateway/problem/call-problems.ts'
import { AdmissionError } from '../host/errors.ts'
import type { LaneScope } from '../host/host.ts'
import type { CallRequest } from '../host/request.ts'
import { currentCall } from './call-context.ts'

/** The used part of a `LanguageModelV2`, `V3` or `V4`. */
export interface LanguageModelLike {
  readonly provider: string
  readonly modelId: string
  doGenerate(options: never): PromiseLike<unknown>
  doStream(options: never): PromiseLike<unknown>
}

interface CallOptions {
  readonly abortSignal?: AbortSignal
}

export interface LanedModelOptions {
  /** Describes a call. Default: the description of the surrounding `withCall`. */
  readonly call?: (options: CallOptions) => CallRequest
}

type Step = (options: CallOptions) => PromiseLike<unknown>

const marks = ['vercel.ai.error', 'vercel.ai.error.AI_APICallError']

/** As the AI SDK's `APICallError.isInstance` knows one. */
const isApiCallError = (error: unknown): error is Error =>
  error instanceof Error && marks.every((mark) => (error as never)[Symbol.for(mark)] === true)

/** The error, as one that is not tried again. */
const unretried = (error: Error, cause: unknown): Error =>
  Object.create(Object.getPrototypeOf(error) as object, {
    ...Object.getOwnPropertyDescriptors(error),
    isRetryable: { value: false, enumerable: true, configurable: true, writable: true },
    cause: { value: cause, enumerable: false, configurable: true, writable: true },
  }) as Error

/** A refusal of the lanes as an `APICallError`; the provider's own one where the provider said it. */
const asApiCallError = (refusal: AdmissionError, { provider, modelId }: LanguageModelLike): Error => {
  const { cause } = refusal as { readonly cause?: unknown }
  if (isApiCallError(cause)) return unretried(cause, refusal)
  const { status, retryAfterS } = admissionProblem(refusal, 0)
  const error = Object.assign(new Error(refusal.message, { cause: refusal }), {
    url: `rightofway:${provider}/${modelId}`,
    requestBodyValues: {},
    statusCode: status,
    responseHeaders: {
      'x-rightofway-call-id': refusal.callId,
      ...(retryAfterS === null ? {} : { 'retry-after': String(retryAfterS) }),
    },
    isRetryable: false,
  })
  for (const mark of marks) Object.defineProperty(error, Symbol.for(mark), { value: true })
  error.name = 'AI_APICallError'
  return error
}

/**
 * The model with lanes: pass it where a model goes (`generateText`, `streamText`, agents). Every step is
 * one call of the scope; a stream holds its permit until its end. Every failure is an `APICallError`
 * with `isRetryable: false`, whose `cause` is the `AdmissionError` where the lanes refused it.
 */
export const lanedModel = <Model extends LanguageModelLike>(
  model: Model,
  scope: LaneScope,
  { call = () => currentCall() }: LanedModelOptions = {},
): Model => {
  const laned =
    (step: Step): Step =>
    async (options) => {
      const { abortSignal } = options
      const request = call(options)
      const signal = request.signal ?? abortSignal
      try {
        return await scope.run({ ...request, ...(signal === undefined ? {} : { signal }) }, (permit) =>
          step({ ...options, abortSignal: permit.signal }),
        )
      } catch (error) {
        if (error instanceof AdmissionError) throw asApiCallError(error, model)
        throw isApiCallError(error) ? unretried(error, error.cause) : error
      }
    }
  const steps = new Map<PropertyKey, Step>(
    (['doGenerate', 'doStream'] as const).map((name) => [name, laned((model[name] as Step).bind(model))]),
  )
  return new Proxy(model, {
    get: (target, property) => {
      const step = steps.get(property)
      if (step !== undefined) return step
      // Private members are reached through the model only, not through its proxy.
      const value: unknown = Reflect.get(target, property, target)
      return typeof value === 'function' ? (value as (...args: unknown[]) => unknown).bind(target) : value
    },
  })
}
