const onsets = ['b', 'd', 'f', 'g', 'k', 'l', 'm', 'n', 'p', 'r', 's', 't', 'v', 'z'] as const
const vowels = ['a', 'e', 'i', 'o', 'u'] as const

/** A made-up word, the same for the same dispatch and index. One word counts as one token. */
export const wordAt = (dispatch: number, index: number): string => {
  let hash = Math.imul(dispatch + 1, 0x9e3779b1) ^ Math.imul(index + 1, 0x85ebca6b)
  let word = ''
  for (let syllable = 0; syllable < 2; syllable++) {
    hash = Math.imul(hash ^ (hash >>> 15), 0x2c1b3c6d)
    hash ^= hash >>> 13
    const bits = hash >>> 0
    word += `${onsets[bits % onsets.length]}${vowels[(bits >>> 8) % vowels.length]}`
  }
  return index === 0 ? word : ` ${word}`
}

/** The whole made-up answer. */
export const textOf = (dispatch: number, outputTokens: number): string => {
  let text = ''
  for (let index = 0; index < outputTokens; index++) text += wordAt(dispatch, index)
  return text
}
