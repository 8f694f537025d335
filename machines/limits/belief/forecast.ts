/** When a call of any size is believed to fit, and when a doubtful one may be tried. */
import { type Belief, layersThatSpeak, priorOf } from './belief.ts'
import { families, fitsBy, leaderOf, roomBy, shareOf } from './layer.ts'
import { statedUntil } from './stated-waits.ts'

/** Tries that may well be refused follow each other so closely at most, milliseconds: the answer to one comes before the next. */
const leastSpacingMs = 40

/** Input tokens that may be sent at `atMs`, as far as `trust` (0: surely, 1: by the best guess, 2: by the most hopeful bound) goes. */
export const roomAt = (belief: Belief, atMs: number, trust: number): number => {
  let room = Number.POSITIVE_INFINITY
  for (const name of layersThatSpeak(belief)) {
    const leader = leaderOf(belief[name], priorOf(belief, name))
    room = Math.min(room, roomBy(belief[name], leader, belief.charges, atMs, trust))
  }
  return room
}

/** The earliest time at which a call of `tokens` is believed to fit, were nothing more sent, epoch milliseconds; null when waiting does not make it fit. */
export const forecast = (belief: Belief, tokens: number, atMs: number, trust: number): number | null => {
  let fitsAtMs = statedUntil(belief, tokens, atMs)
  for (const name of layersThatSpeak(belief)) {
    const leader = leaderOf(belief[name], priorOf(belief, name))
    const time = fitsBy(belief[name], leader, belief.charges, tokens, atMs, trust)
    if (time === null) return null
    fitsAtMs = Math.max(fitsAtMs, time)
  }
  return fitsAtMs
}

/** Weight from which a hypothesis that does not lead is worth a try. */
const credibleShare = 0.15

/** The earliest time at which a call fits by some credible hypothesis of each layer, though the leading one may not say so; null when by none. */
export const hopefulForecast = (belief: Belief, tokens: number, atMs: number): number | null => {
  let fitsAtMs = statedUntil(belief, tokens, atMs)
  for (const name of layersThatSpeak(belief)) {
    let earliest = Number.POSITIVE_INFINITY
    for (const family of families) {
      if (shareOf(belief[name], priorOf(belief, name), family) < credibleShare) continue
      const time = fitsBy(belief[name], family, belief.charges, tokens, atMs, 0.5)
      if (time !== null) earliest = Math.min(earliest, time)
    }
    if (!Number.isFinite(earliest)) return null
    fitsAtMs = Math.max(fitsAtMs, earliest)
  }
  return fitsAtMs
}

/** The next time at which a try may be risked again, epoch milliseconds: the answer to the last one comes first, and refusals in a row space tries out. */
export const mayRiskAt = (
  { riskedAtMs, answerMs, refusals, refusal }: Belief,
  baseMs: number,
  maxMs: number,
): number => {
  const spacedMs = riskedAtMs + Math.max(leastSpacingMs, answerMs + 10)
  if (refusals < 2 || refusal === null) return spacedMs
  return Math.max(spacedMs, refusal.atMs + Math.min(maxMs, baseMs * 2 ** Math.min(refusals - 2, 20)))
}
