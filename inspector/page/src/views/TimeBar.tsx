import { useEffect, useRef } from 'react'
import { useInspection } from '../hooks/inspection.ts'
import { useSize } from '../hooks/size.ts'
import { type Palette, usePalette } from '../hooks/theme.ts'
import type { Track } from '../model/track.ts'
import { clockText, countText, dateText, durationText, stateTokens } from '../model/words.ts'

const stripHeight = 6
const columnWidth = 3

/** The number of events over time, and the states. */
const drawOverview = (canvas: HTMLCanvasElement, track: Track, palette: Palette, moment: number): void => {
  const { clientWidth: width, clientHeight: height } = canvas
  const scale = devicePixelRatio
  canvas.width = width * scale
  canvas.height = height * scale
  const pen = canvas.getContext('2d')
  const { firstAt, lastAt, entries } = track
  if (pen === null || firstAt === null || lastAt === null) return
  pen.scale(scale, scale)
  const spanMs = Math.max(1, lastAt - firstAt)
  const x = (at: number) => ((at - firstAt) / spanMs) * width
  const columns = new Array<number>(Math.ceil(width / columnWidth) + 1).fill(0)
  for (const { event } of entries) {
    const column = Math.floor(x(event.at) / columnWidth)
    columns[column] = (columns[column] ?? 0) + 1
  }
  const most = Math.max(1, ...columns)
  const room = height - stripHeight - 3
  columns.forEach((count, column) => {
    if (count === 0) return
    const left = column * columnWidth
    const size = Math.max(1.5, Math.sqrt(count / most) * room)
    pen.fillStyle = left <= x(moment) ? palette.muted : palette.line
    pen.fillRect(left, room - size, columnWidth - 1, size)
  })
  for (const { state, from, to } of track.series.bands) {
    const left = Math.max(0, x(from))
    pen.fillStyle = palette[stateTokens[state]]
    pen.fillRect(left, height - stripHeight, Math.max(0.5, x(to ?? lastAt) - left), stripHeight)
  }
}

const Overview = ({ track, moment }: { readonly track: Track; readonly moment: number }) => {
  const ref = useRef<HTMLCanvasElement>(null)
  const palette = usePalette()
  const { width } = useSize(ref)
  const count = track.entries.length
  const bands = track.series.bands.length
  // The drawn data grows in place, so its size tells when to draw again.
  useEffect(() => {
    if (ref.current !== null && width > 0) drawOverview(ref.current, track, palette, moment)
  }, [track, palette, moment, width, count, bands])
  return <canvas ref={ref} className="overview" />
}

/** Pauses, scrubs, steps, and returns to live. */
export const TimeBar = () => {
  const inspection = useInspection()
  const { track, place, eventAt } = inspection
  const isPaused = place.position !== null
  const hasPast = track !== null && eventAt !== null && track.entries.length > 0
  return (
    <section className="time-bar" aria-label="Time">
      <div className="time-buttons">
        <button
          type="button"
          onClick={() => inspection.step(-1)}
          disabled={!hasPast}
          aria-label="One event back"
        >
          ◂
        </button>
        <button
          type="button"
          className="play"
          onClick={() => (isPaused ? inspection.follow() : inspection.pause())}
          disabled={!hasPast}
        >
          {isPaused ? 'Resume' : 'Pause'}
        </button>
        <button
          type="button"
          onClick={() => inspection.step(1)}
          disabled={!hasPast}
          aria-label="One event on"
        >
          ▸
        </button>
      </div>
      {hasPast ? (
        <Scrubber track={track} moment={eventAt} />
      ) : (
        <p className="hint">Nothing has happened yet.</p>
      )}
      <Standing />
    </section>
  )
}

/** Events that a key moves by. */
const stepsOf: Readonly<Record<string, number>> = {
  ArrowLeft: -1,
  ArrowDown: -1,
  ArrowRight: 1,
  ArrowUp: 1,
  PageDown: -10,
  PageUp: 10,
  Home: Number.NEGATIVE_INFINITY,
  End: Number.POSITIVE_INFINITY,
}

const Scrubber = ({ track, moment }: { readonly track: Track; readonly moment: number }) => {
  const inspection = useInspection()
  const first = track.firstAt ?? 0
  const last = track.lastAt ?? 0
  return (
    <div className="scrubber">
      <Overview track={track} moment={moment} />
      <input
        type="range"
        aria-label="Moment"
        aria-valuetext={clockText(moment)}
        min={first}
        max={last}
        step={1}
        value={moment}
        onKeyDown={(event) => {
          const steps = stepsOf[event.key]
          if (steps === undefined) return
          // The slider's own step is a millisecond, in which nothing happens most often.
          event.preventDefault()
          inspection.step(steps)
        }}
        onChange={({ target }) => {
          const entry = track.entries[Math.max(0, track.indexAtTime(Number(target.value)))]
          if (entry !== undefined) inspection.go({ position: entry.position })
        }}
      />
      <div className="scrub-ends">
        <span>
          {clockText(first).slice(0, 8)}
          {track.earlier > 0 && (
            <button type="button" className="link" onClick={() => void inspection.loadEarlier()}>
              {countText(track.earlier)} earlier events
            </button>
          )}
        </span>
        <span>{durationText(last - first)}</span>
        <span>{clockText(last).slice(0, 8)}</span>
      </div>
    </div>
  )
}

const Standing = () => {
  const inspection = useInspection()
  const { track, place, moment, index } = inspection
  const isPaused = place.position !== null
  const entry = track?.entries[index]
  return (
    <div className="standing-now">
      <div className="standing-text">
        <time>{moment === null ? '--:--:--' : clockText(moment)}</time>
        <small>
          {moment === null
            ? ''
            : `${dateText(moment)} UTC · event ${countText(index + 1)} of ${countText(track?.entries.length ?? 0)}`}
        </small>
        <small className="last-event">{entry?.event.type ?? ''}</small>
      </div>
      <button
        type="button"
        className={isPaused ? 'live-button' : 'live-button on'}
        aria-pressed={!isPaused}
        onClick={() => inspection.follow()}
      >
        <i className="live-dot" aria-hidden="true" />
        Live
      </button>
    </div>
  )
}
