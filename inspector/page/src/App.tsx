import { lazy, Suspense } from 'react'
import { InspectionContext, useInspection } from './hooks/inspection.ts'
import { useKeys } from './hooks/keys.ts'
import { useTheme } from './hooks/theme.ts'
import type { View } from './model/place.ts'
import type { Inspection } from './net/inspection.ts'
import { Header } from './views/Header.tsx'
import { ScopeList } from './views/ScopeList.tsx'
import { TimeBar } from './views/TimeBar.tsx'
import { Why } from './views/Why.tsx'

// Each view is loaded on its first use, so that the page itself appears at once.
const pages: Readonly<Record<View, ReturnType<typeof lazy>>> = {
  scopes: lazy(() => import('./views/Scopes.tsx')),
  statechart: lazy(() => import('./views/Statechart.tsx')),
  lanes: lazy(() => import('./views/Lanes.tsx')),
  budget: lazy(() => import('./views/Budget.tsx')),
  decisions: lazy(() => import('./views/Decisions.tsx')),
  actors: lazy(() => import('./views/Actors.tsx')),
}

export const App = ({ inspection }: { readonly inspection: Inspection }) => (
  <InspectionContext value={inspection}>
    <Shell />
  </InspectionContext>
)

const Shell = () => {
  const inspection = useInspection()
  const [theme, nextTheme] = useTheme()
  useKeys(inspection, nextTheme)
  const { view, call } = inspection.place
  const Page = pages[view]
  return (
    <div className={call === null ? 'shell' : 'shell with-why'}>
      <Header theme={theme} nextTheme={nextTheme} />
      <ScopeList />
      <main className="main" id="main">
        {inspection.problem !== null && (
          <p className="problem" role="alert">
            {inspection.problem}
          </p>
        )}
        {inspection.isUnknownScope && (
          <p className="problem" role="alert">
            This host knows no scope <bdi>{inspection.place.scope}</bdi>. The link may be of another journal.
          </p>
        )}
        <Suspense fallback={<p className="empty">Loading…</p>}>
          <Page />
        </Suspense>
      </main>
      {call !== null && <Why callId={call} key={call} />}
      <TimeBar />
    </div>
  )
}
