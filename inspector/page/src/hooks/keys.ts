import { useEffect } from 'react'
import { views } from '../model/place.ts'
import type { Inspection } from '../net/inspection.ts'

/** The effects of the keys, for the help text. */
export const keyHelp: ReadonlyArray<readonly [string, string]> = [
  ['1 to 6', 'switch the view'],
  ['space', 'pause, or follow again'],
  [', and .', 'one event back or on; with shift ten'],
  ['l', 'live again'],
  ['/', 'filter decisions'],
  ['t', 'light, dark or system colours'],
  ['esc', 'close the call'],
]

const isTyping = (target: EventTarget | null): boolean =>
  target instanceof HTMLElement && target.matches('input, select, textarea, [contenteditable]')

const isPressable = (target: EventTarget | null): boolean =>
  target instanceof HTMLElement && target.matches('button, a, summary, [role="row"], [role="button"]')

export const useKeys = (inspection: Inspection, nextTheme: () => void): void => {
  useEffect(() => {
    const press = (event: KeyboardEvent): void => {
      if (event.key === 'Escape') return inspection.go({ call: null })
      if (isTyping(event.target) || event.ctrlKey || event.metaKey || event.altKey) return
      if (event.key === ' ' && isPressable(event.target)) return
      const view = views[Number(event.key) - 1]
      if (view !== undefined) return inspection.go({ view })
      const isPaused = inspection.place.position !== null
      const actions: Readonly<Record<string, () => void>> = {
        ' ': () => (isPaused ? inspection.follow() : inspection.pause()),
        ',': () => inspection.step(-1),
        '.': () => inspection.step(1),
        '<': () => inspection.step(-10),
        '>': () => inspection.step(10),
        l: () => inspection.follow(),
        t: nextTheme,
        '/': () => inspection.requestFilter(),
      }
      const action = actions[event.key]
      if (action === undefined) return
      event.preventDefault()
      action()
    }
    addEventListener('keydown', press)
    return () => removeEventListener('keydown', press)
  }, [inspection, nextTheme])
}
