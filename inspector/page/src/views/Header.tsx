import { useInspection } from '../hooks/inspection.ts'
import { keyHelp } from '../hooks/keys.ts'
import type { Theme } from '../hooks/theme.ts'
import { type View, views } from '../model/place.ts'
import { countText, durationText } from '../model/words.ts'

const titles: Readonly<Record<View, string>> = {
  scopes: 'Scopes',
  statechart: 'Statechart',
  lanes: 'Lanes',
  budget: 'Budget',
  decisions: 'Decisions',
  actors: 'Actors',
}

const themeWords: Readonly<Record<Theme, string>> = { auto: 'System', light: 'Light', dark: 'Dark' }

interface HeaderProps {
  readonly theme: Theme
  readonly nextTheme: () => void
}

export const Header = ({ theme, nextTheme }: HeaderProps) => {
  const inspection = useInspection()
  return (
    <header className="header">
      <h1>
        <svg viewBox="0 0 24 24" aria-hidden="true">
          <path d="M3 8h18" className="mark-primary" />
          <path d="M3 16h6" className="mark-auxiliary" />
          <path d="M15 16h6" className="mark-auxiliary held" />
        </svg>
        rightofway
      </h1>
      <nav aria-label="Views">
        {views.map((view, index) => (
          <button
            key={view}
            type="button"
            className="view-button"
            aria-current={view === inspection.place.view ? 'page' : undefined}
            aria-keyshortcuts={String(index + 1)}
            onClick={() => inspection.go({ view })}
          >
            {titles[view]}
          </button>
        ))}
      </nav>
      <div className="header-end">
        <Health />
        <button
          type="button"
          className="plain"
          onClick={nextTheme}
          aria-label={`Colours: ${themeWords[theme]}. Change`}
          title="Colours (t)"
        >
          {themeWords[theme]}
        </button>
        <details className="help">
          <summary aria-label="Keys">Keys</summary>
          <dl>
            {keyHelp.map(([key, does]) => (
              <div key={key} className="help-row">
                <dt>
                  <kbd>{key}</kbd>
                </dt>
                <dd>{does}</dd>
              </div>
            ))}
          </dl>
        </details>
      </div>
    </header>
  )
}

const connectionWords = {
  connecting: 'connecting',
  live: 'connected',
  recorded: 'recorded file',
  lost: 'connection lost, trying again',
} as const

/** A smaller difference comes from the network and misleads no reader. */
const noticedSkewMs = 5_000

/** Shows whether the page's data is complete. */
const Health = () => {
  const { connection, dropped, track, skewMs } = useInspection()
  const disagreements = track?.disagreements ?? 0
  return (
    <>
      {disagreements > 0 && (
        <span className="health bad" title="This version decides otherwise than the journal recorded">
          {countText(disagreements)} replay differences
        </span>
      )}
      {Math.abs(skewMs) >= noticedSkewMs && (
        <span className="health warn" title="Times and ages here are by the host's clock">
          this device's clock is {durationText(Math.abs(skewMs))} {skewMs > 0 ? 'behind' : 'ahead of'} the
          host's
        </span>
      )}
      {dropped > 0 && (
        <span
          className="health warn"
          title="This page was too slow for the feed; the journal has what it missed"
        >
          {countText(dropped)} frames dropped
        </span>
      )}
      <span className={`health ${connection}`} role="status">
        {connectionWords[connection]}
      </span>
    </>
  )
}
