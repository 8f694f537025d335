/** How many input tokens a body has, before the provider has counted them. */
import type { Usage } from '../../../machines/index.ts'

export interface TokenEstimator {
  /** Input tokens, whole, >= 0. */
  estimate(body: Buffer, model: string, scope: string): number
  /** What a call of `bodyBytes` turned out to have used; `estimated` is what was said of it before. */
  learn(bodyBytes: number, usage: Usage, scope: string, estimated: number): void
  /** The scope is no more. */
  forget?(scope: string): void
}

/** How good the estimates of one scope are. */
export interface EstimateReading {
  readonly tokensPerByte: number
  /** Moving average of |estimated - used| / used. */
  readonly meanErrorRatio: number
  readonly samples: number
}

export interface BytesEstimator extends TokenEstimator {
  readings(): Readonly<Record<string, EstimateReading>>
}

/** English text and JSON: about four bytes a token. */
const firstTokensPerByte = 1 / 4
/** Weight of what was known before, after each sample. */
const retained = 0.8
/** No text is denser, no body with pictures in it thinner. */
const bounds = { least: 1 / 1_024, most: 1 }

interface Ratio {
  bytes: number
  tokens: number
  errorRatio: number
  samples: number
}

/**
 * Bytes times a ratio that each scope learns from settled usage. Decaying sums rather than a mean
 * of ratios: large bodies, which matter to a limit, weigh as much as they are large.
 */
export const makeBytesEstimator = (): BytesEstimator => {
  const ratios = new Map<string, Ratio>()
  const tokensPerByte = (scope: string): number => {
    const ratio = ratios.get(scope)
    if (ratio === undefined) return firstTokensPerByte
    return Math.min(bounds.most, Math.max(bounds.least, ratio.tokens / ratio.bytes))
  }
  return {
    estimate: (body, _model, scope) => Math.ceil(body.byteLength * tokensPerByte(scope)),
    learn: (bodyBytes, { inputTokens }, scope, estimated) => {
      if (inputTokens === null || inputTokens <= 0 || bodyBytes <= 0) return
      const error = Math.abs(estimated - inputTokens) / inputTokens
      const before = ratios.get(scope)
      if (before === undefined) {
        ratios.set(scope, { bytes: bodyBytes, tokens: inputTokens, errorRatio: error, samples: 1 })
        return
      }
      before.bytes = before.bytes * retained + bodyBytes
      before.tokens = before.tokens * retained + inputTokens
      before.errorRatio += (error - before.errorRatio) * (1 - retained)
      before.samples += 1
    },
    forget: (scope) => void ratios.delete(scope),
    readings: () =>
      Object.fromEntries(
        [...ratios].map(([scope, { errorRatio, samples }]) => [
          scope,
          { tokensPerByte: tokensPerByte(scope), meanErrorRatio: errorRatio, samples },
        ]),
      ),
  }
}
