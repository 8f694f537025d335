/** Numbers as people read them. */

export const escapeText = (text: string): string =>
  text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;').replaceAll('"', '&quot;')

/** `0.4 s`, `12.3 s`, `4:05 min`; a dash for none. */
export const duration = (ms: number | null): string => {
  if (ms === null) return '–'
  if (ms < 99_950) return `${(ms / 1_000).toFixed(1)} s`
  const seconds = Math.round(ms / 1_000)
  return `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, '0')} min`
}

/** `950`, `41k`, `2.35M`. */
export const tokens = (count: number): string => {
  if (count < 1_000) return String(Math.round(count))
  if (count < 999_500) return `${Math.round(count / 1_000)}k`
  return `${(count / 1_000_000).toFixed(2)}M`
}

export const share = (value: number | null): string => (value === null ? '–' : value.toFixed(2))
