import { useInspection } from '../hooks/inspection.ts'
import { isPressing, scopeParts, stateTokens } from '../model/words.ts'

/** Every scope, always visible: its state, its waiting calls, its alarms. */
export const ScopeList = () => {
  const inspection = useInspection()
  const rows = inspection.statuses
  const chosen = inspection.track?.scope ?? inspection.place.scope
  return (
    <aside className="scope-list" aria-label="Scopes">
      <h2>Scopes</h2>
      {rows.length === 0 && <p className="hint">None yet. A scope appears with its first call.</p>}
      <ul>
        {rows.map((row) => {
          const { title, detail } = scopeParts(row.scope)
          const waiting = row.primary.waiting + row.auxiliary.waiting
          return (
            <li key={row.scope}>
              <button
                type="button"
                className="scope-button"
                aria-current={row.scope === chosen ? 'true' : undefined}
                title={row.scope}
                onClick={() => inspection.go({ scope: row.scope, call: null })}
              >
                <i className={`dot ${stateTokens[row.state]}`} aria-hidden="true" />
                <bdi className="scope-title">{title}</bdi>
                {row.alarms.some(isPressing) && (
                  <span className="alarm-mark" role="img" aria-label="alarm">
                    !
                  </span>
                )}
                {waiting > 0 && (
                  <span className="waiting-count" title={`${waiting} waiting`}>
                    {waiting}
                  </span>
                )}
                <bdi className="scope-detail">{detail ?? row.state}</bdi>
              </button>
            </li>
          )
        })}
      </ul>
    </aside>
  )
}
