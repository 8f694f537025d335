import { overloadedRefusal } from './overload.ts'
import type { LimitRule, Statement } from './rule.ts'

/** A provider's outages: in these periods every call is refused as overloaded, whatever its size. */
export const outage = (options: {
  /** From and until, ms; ascending and apart. */
  readonly periods: ReadonlyArray<readonly [number, number]>
  readonly states?: Statement
}): LimitRule<null> => {
  const endsAtMs = (atMs: number): number | null =>
    options.periods.find(([fromMs, untilMs]) => fromMs <= atMs && atMs < untilMs)?.[1] ?? null
  return {
    name: 'outage',
    states: options.states ?? 'none',
    initial: () => null,
    advance: () => null,
    check: (_state, { atMs }) =>
      endsAtMs(atMs) === null
        ? { accepted: true, state: null }
        : { accepted: false, state: null, refusal: { ...overloadedRefusal, rule: 'outage' } },
    complete: () => null,
    headers: () => [],
    ceiling: (_state, atMs) => (endsAtMs(atMs) === null ? Number.POSITIVE_INFINITY : 0),
    acceptsAtMs: (_state, { atMs }) => endsAtMs(atMs) ?? atMs,
  }
}
