import { useEffect, useState } from 'react'

export const themes = ['auto', 'light', 'dark'] as const
export type Theme = (typeof themes)[number]

const stored = (): Theme => {
  const text = localStorage.getItem('rightofway-theme')
  return themes.find((theme) => theme === text) ?? 'auto'
}

/** The chosen scheme, and a function that chooses the next one. `auto` is the system's scheme. */
export const useTheme = (): readonly [Theme, () => void] => {
  const [theme, setTheme] = useState(stored)
  useEffect(() => {
    document.documentElement.dataset['theme'] = theme
    localStorage.setItem('rightofway-theme', theme)
    dispatchEvent(new Event('rightofway-theme'))
  }, [theme])
  return [theme, () => setTheme(themes[(themes.indexOf(theme) + 1) % themes.length] as Theme)]
}

const tokens = [
  'text',
  'muted',
  'faint',
  'line',
  'panel',
  'page',
  'primary',
  'auxiliary',
  'good',
  'warn',
  'bad',
  'off',
  'state-idle',
  'state-pending',
  'state-quiet',
  'state-admitting',
  'state-active',
  'state-draining',
  'state-settled',
] as const
export type Palette = Readonly<Record<(typeof tokens)[number], string>>

/** The scheme's colours in a form that a canvas takes. */
const readPalette = (): Palette => {
  const probe = document.createElement('span')
  document.body.append(probe)
  const colours = tokens.map((token) => {
    probe.style.color = `var(--${token})`
    return [token, getComputedStyle(probe).color] as const
  })
  probe.remove()
  return Object.fromEntries(colours) as unknown as Palette
}

export const usePalette = (): Palette => {
  const [palette, setPalette] = useState(readPalette)
  useEffect(() => {
    const read = () => setPalette(readPalette())
    const scheme = matchMedia('(prefers-color-scheme: dark)')
    scheme.addEventListener('change', read)
    addEventListener('rightofway-theme', read)
    read()
    return () => {
      scheme.removeEventListener('change', read)
      removeEventListener('rightofway-theme', read)
    }
  }, [])
  return palette
}
