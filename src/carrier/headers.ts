/** The class in HTTP headers, out of this process and into it. */
import type { PriorityClass } from '../../machines/index.ts'
import { readPriority } from './counters.ts'
import { priorityHeader } from './priority.ts'
import { currentPriority } from './with-priority.ts'

/** Headers as Node and most clients hold them. */
export type HeaderRecord = Readonly<Record<string, string | number | ReadonlyArray<string> | undefined>>

/**
 * A copy of `headers` with the present class. It replaces a class that was stated before, under any spelling
 * of the name. When untagged, the header is absent.
 */
export function inject(headers: Headers): Headers
export function inject<H extends HeaderRecord>(headers: H): H & { readonly 'x-resource-priority'?: string }
export function inject(headers?: undefined): { readonly 'x-resource-priority'?: string }
export function inject(headers: Headers | HeaderRecord = {}): Headers | HeaderRecord {
  const priorityClass = currentPriority()
  if (headers instanceof Headers) {
    const copy = new Headers(headers)
    copy.delete(priorityHeader)
    if (priorityClass !== null) copy.set(priorityHeader, priorityClass)
    return copy
  }
  const others = Object.entries(headers).filter(([name]) => name.toLowerCase() !== priorityHeader)
  const stated = priorityClass === null ? [] : [[priorityHeader, priorityClass] as const]
  return Object.fromEntries([...others, ...stated])
}

const statedIn = (headers: Headers | HeaderRecord): string | null => {
  if (headers instanceof Headers) return headers.get(priorityHeader)
  for (const name in headers) {
    const value = headers[name]
    if (value === undefined || name.toLowerCase() !== priorityHeader) continue
    return Array.isArray(value) ? value.join(', ') : String(value)
  }
  return null
}

/**
 * The class that `headers` state; null when they state none or an unknown one, which is counted. Pass it to
 * `withPriority`.
 */
export const extract = (headers: Headers | HeaderRecord): PriorityClass | null =>
  readPriority(statedIn(headers))
