/** Names under which one model is asked for: its dated id, its alias, with or without its vendor. */

const suffixes = /(?:-latest|[-@]\d{8}|-\d{4}-\d{2}-\d{2}|@default|\[1m\])$/i

/** The name without its vendor and its date: `gpt-5` for `openai/gpt-5-2026-08-07`. */
export const familyOf = (model: string): string => {
  const bare = model.slice(model.lastIndexOf('/') + 1)
  const family = bare.replace(suffixes, '')
  return family === '' ? model : family
}
