/** How many tokens a call takes, before its provider has counted them. */
import type { PriorityClass, Usage } from '../../../machines/index.ts'
import type { BodyWeight } from './body-weight.ts'

export interface OutputQuestion {
  readonly scope: string
  readonly priorityClass: PriorityClass
  /** What the request allows its answer; null where it states nothing. */
  readonly maxOutputTokens: number | null
}

export interface TokenEstimator {
  /** Input tokens, whole, >= 0. */
  estimate(weight: BodyWeight, scope: string): number
  /** Output tokens, whole, in [0, `maxOutputTokens`]. */
  estimateOutput(question: OutputQuestion): number
  /** What a call turned out to have used; `estimated` is what was said of its input before. */
  learn(settled: SettledEstimate, usage: Usage): void
  /** The scope is no more. */
  forget?(scope: string): void
}

export interface SettledEstimate {
  readonly weight: BodyWeight
  readonly scope: string
  readonly priorityClass: PriorityClass
  readonly estimated: number
}

/** How good the estimates of one scope are. */
export interface EstimateReading {
  /** Tokens for each byte of plain text. */
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
/** No text is denser or thinner than this; one sample says at most so many times more or less than what was known. */
const bounds = { least: 1 / 1_024, most: 1, step: 4 }
/** Output that is expected of a first call, tokens. */
const firstOutputTokens = 512

interface Ratio {
  bytes: number
  tokens: number
  errorRatio: number
  samples: number
}

const clamp = (value: number, least: number, most: number): number => Math.min(most, Math.max(least, value))

/**
 * Bytes of plain text times a ratio that each scope learns from settled usage, and the tokens of media on top. Decaying sums
 * rather than a mean of ratios: large bodies, which matter to a limit, weigh as much as they are large. A body with
 * media teaches nothing of text. Output is a moving average of each scope and class.
 */
export const makeBytesEstimator = (): BytesEstimator => {
  const ratios = new Map<string, Ratio>()
  const outputs = new Map<string, Map<PriorityClass, number>>()
  const tokensPerByte = (scope: string): number => {
    const ratio = ratios.get(scope)
    if (ratio === undefined || ratio.bytes === 0) return firstTokensPerByte
    return clamp(ratio.tokens / ratio.bytes, bounds.least, bounds.most)
  }
  const learnInput = ({ weight, scope, estimated }: SettledEstimate, inputTokens: number): void => {
    if (weight.textBytes + weight.mediaTokens <= 0) return
    const known = tokensPerByte(scope)
    const ratio = ratios.get(scope) ?? { bytes: 0, tokens: 0, errorRatio: 0, samples: 0 }
    ratios.set(scope, ratio)
    const error = Math.abs(estimated - inputTokens) / inputTokens
    ratio.errorRatio = ratio.samples === 0 ? error : ratio.errorRatio * retained + error * (1 - retained)
    ratio.samples += 1
    if (weight.mediaTokens > 0) return
    const sample = clamp(inputTokens / weight.textBytes, known / bounds.step, known * bounds.step)
    ratio.bytes = ratio.bytes * retained + weight.textBytes
    ratio.tokens = ratio.tokens * retained + weight.textBytes * sample
  }
  const learnOutput = ({ scope, priorityClass }: SettledEstimate, tokens: number): void => {
    const classes = outputs.get(scope) ?? new Map<PriorityClass, number>()
    outputs.set(scope, classes)
    const before = classes.get(priorityClass)
    classes.set(priorityClass, before === undefined ? tokens : before * retained + tokens * (1 - retained))
  }
  return {
    estimate: ({ textBytes, mediaTokens }, scope) =>
      Math.ceil(textBytes * tokensPerByte(scope)) + mediaTokens,
    estimateOutput: ({ scope, priorityClass, maxOutputTokens }) => {
      const expected = Math.ceil(outputs.get(scope)?.get(priorityClass) ?? firstOutputTokens)
      return maxOutputTokens === null ? expected : Math.min(expected, maxOutputTokens)
    },
    learn: (settled, { inputTokens, outputTokens }) => {
      if (inputTokens !== null && inputTokens > 0) learnInput(settled, inputTokens)
      if (outputTokens !== null) learnOutput(settled, outputTokens)
    },
    forget: (scope) => {
      ratios.delete(scope)
      outputs.delete(scope)
    },
    readings: () =>
      Object.fromEntries(
        [...ratios].map(([scope, { errorRatio, samples }]) => [
          scope,
          { tokensPerByte: tokensPerByte(scope), meanErrorRatio: errorRatio, samples },
        ]),
      ),
  }
}
