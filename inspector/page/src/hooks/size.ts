import { type RefObject, useEffect, useState } from 'react'

/** Width and height of an element, CSS pixels; zeros before it exists. */
export const useSize = (
  ref: RefObject<HTMLElement | null>,
): { readonly width: number; readonly height: number } => {
  const [size, setSize] = useState({ width: 0, height: 0 })
  useEffect(() => {
    const element = ref.current
    if (element === null) return
    const observer = new ResizeObserver(() =>
      setSize({ width: element.clientWidth, height: element.clientHeight }),
    )
    observer.observe(element)
    return () => observer.disconnect()
  }, [ref])
  return size
}
