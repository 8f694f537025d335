import { createContext, use, useSyncExternalStore } from 'react'
import type { Inspection } from '../net/inspection.ts'

export const InspectionContext = createContext<Inspection | null>(null)

/** The page's inspection; a change draws the component again. */
export const useInspection = (): Inspection => {
  const inspection = use(InspectionContext)
  if (inspection === null) throw new Error('used outside the page')
  useSyncExternalStore(inspection.subscribe, inspection.version)
  return inspection
}
