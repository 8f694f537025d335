/** One fault in a request: which field, what is allowed, what came. */
export interface FieldProblem {
  readonly field: string
  readonly expected: string
  readonly got: string
}

/** Of a text that a request brought, the most that is said back, characters. */
const echoLength = 80

/** Text of a request, short enough to be said back. */
export const echo = (text: string, most = echoLength): string =>
  text.length > most ? `${text.slice(0, most - 3)}...` : text
