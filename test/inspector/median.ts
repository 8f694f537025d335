/** The middle one of several measurements: one that was disturbed does not count. */
export const median = (times: number, measure: () => number): number => {
  const values = Array.from({ length: times }, measure).sort((one, other) => one - other)
  return values[Math.floor(times / 2)] as number
}
