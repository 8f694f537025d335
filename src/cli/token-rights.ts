/** What a new token may do, from words of the command line. */
import { InvalidInput, lanes, priorityClasses } from '../../machines/index.ts'
import type { TokenRights } from '../gateway/entrance/tokens.ts'

const named = <A extends string>(flag: string, stated: string, known: ReadonlyArray<A>): ReadonlyArray<A> =>
  stated.split(',').map((part) => {
    const found = known.find((name) => name === part.trim().toLowerCase())
    if (found !== undefined) return found
    throw new InvalidInput([
      { field: `--${flag}`, expected: `some of ${known.join(', ')}`, got: JSON.stringify(part) },
    ])
  })

/** Throws `InvalidInput`. */
export const rightsOf = (principal: string, classes: string | null, stated: string | null): TokenRights => {
  if (!/^[\x20-\x7e]{1,256}$/.test(principal))
    throw new InvalidInput([
      {
        field: '--principal',
        expected: '1 to 256 printable ASCII characters',
        got: JSON.stringify(principal.slice(0, 80)),
      },
    ])
  return {
    principal,
    classes: classes === null ? null : named('classes', classes, priorityClasses),
    lanes: stated === null ? null : named('lanes', stated, lanes),
  }
}
