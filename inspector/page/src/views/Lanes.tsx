import { type KeyboardEvent, useCallback, useEffect, useRef, useState } from 'react'
import { useInspection } from '../hooks/inspection.ts'
import { useSize } from '../hooks/size.ts'
import { usePalette } from '../hooks/theme.ts'
import { type CallBar, spanAt, spentMs } from '../model/calls.ts'
import type { Track } from '../model/track.ts'
import { clockText, countText, durationText } from '../model/words.ts'
import { barAt, contentHeight, drawLanes, type Scene, type View, zoomed } from './lanes-canvas.ts'
import { Empty, LaneMark } from './parts.tsx'

const Lanes = () => {
  const { track, moment } = useInspection()
  if (track === null || moment === null || track.calls.bars.length === 0)
    return <Empty title="No calls yet">Each call will be a bar here, from its submission to its end.</Empty>
  return <Timeline track={track} moment={moment} key={track.scope} />
}

const legend: ReadonlyArray<readonly [string, string]> = [
  ['waiting', 'waiting'],
  ['admitted', 'admitted'],
  ['streaming', 'streaming'],
  ['end good', 'completed'],
  ['end warn', 'throttled'],
  ['end bad', 'failed or expired'],
  ['end off', 'cancelled'],
]

const fitted = (track: Track, moment: number): View => {
  const from = track.calls.bars[0]?.submittedAt ?? moment - 1_000
  const spanMs = Math.max(1_000, moment - from)
  return { from: from - spanMs * 0.02, to: moment + spanMs * 0.03, top: 0 }
}

/** Longest span of time that is shown first. */
const firstSpanMs = 5 * 60_000

const Timeline = ({ track, moment }: { readonly track: Track; readonly moment: number }) => {
  const inspection = useInspection()
  const canvas = useRef<HTMLCanvasElement>(null)
  const box = useRef<HTMLDivElement>(null)
  const { width, height } = useSize(box)
  const palette = usePalette()
  const [follows, setFollows] = useState(true)
  const view = useRef<View>(fitted(track, moment))
  const [hover, setHover] = useState<{
    readonly bar: CallBar
    readonly x: number
    readonly y: number
  } | null>(null)
  const sceneNow = (): Scene => ({
    track,
    view: view.current,
    moment,
    palette,
    width,
    height,
    chosen: inspection.place.call,
    font: getComputedStyle(document.body).fontFamily,
  })
  const scene = useRef(sceneNow)
  scene.current = sceneNow
  if (follows) {
    const fit = fitted(track, moment)
    view.current = { ...fit, from: Math.max(fit.from, moment - firstSpanMs), top: view.current.top }
  }
  const draw = useCallback(() => paint(canvas.current, scene.current()), [])
  useEffect(() => {
    if (width > 0) draw()
  })
  const look = useCallback(
    (next: View) => {
      const room = Math.max(0, contentHeight(scene.current().track, height) - height)
      view.current = { ...next, top: Math.max(0, Math.min(room, next.top)) }
      setFollows(false)
      requestAnimationFrame(draw)
    },
    [draw, height],
  )
  usePointer(canvas, scene, look, (bar, x, y) => setHover(bar === null ? null : { bar, x, y }))
  const choose = (bar: CallBar | undefined) => bar !== undefined && inspection.go({ call: bar.call.id })
  return (
    <section className="panel lanes" aria-label="Lanes">
      <div className="lanes-head">
        <ul className="legend">
          {legend.map(([tone, word]) => (
            <li key={word}>
              <i className={`legend-mark ${tone}`} aria-hidden="true" />
              {word}
            </li>
          ))}
        </ul>
        <span className="muted">{countText(track.calls.bars.length)} calls</span>
        <Zoom view={view} look={look} moment={moment} fit={() => look(fitted(track, moment))} />
        <button type="button" className="plain" aria-pressed={follows} onClick={() => setFollows(true)}>
          Follow
        </button>
      </div>
      <div className="lanes-box" ref={box}>
        {/* biome-ignore lint/a11y/noInteractiveElementToNoninteractiveRole: it is moved with the keys */}
        <canvas
          ref={canvas}
          tabIndex={0}
          role="application"
          aria-label="Timeline of calls. Arrow left and right move in time, plus and minus zoom, arrow up and down choose a call."
          onKeyDown={(event) =>
            steer(event, view.current, look, (by) => choose(neighbour(track, inspection.place.call, by)))
          }
          onClick={({ nativeEvent: { offsetX, offsetY } }) =>
            choose(barAt(sceneNow(), offsetX, offsetY) ?? undefined)
          }
        />
        {hover !== null && <Tip {...hover} moment={moment} width={width} />}
      </div>
    </section>
  )
}

interface ZoomProps {
  readonly view: { readonly current: View }
  readonly look: (view: View) => void
  readonly moment: number
  readonly fit: () => void
}

const Zoom = ({ view, look, moment, fit }: ZoomProps) => {
  const by = (factor: number) => () => {
    const { from, to } = view.current
    look(zoomed(view.current, factor, moment >= from && moment <= to ? moment : (from + to) / 2))
  }
  return (
    <span className="buttons">
      <button type="button" onClick={by(2)} aria-label="Zoom out">
        −
      </button>
      <button type="button" onClick={by(0.5)} aria-label="Zoom in">
        +
      </button>
      <button type="button" onClick={fit}>
        All
      </button>
    </span>
  )
}

const paint = (canvas: HTMLCanvasElement | null, scene: Scene): void => {
  if (canvas === null) return
  const scale = devicePixelRatio
  const [width, height] = [Math.round(scene.width * scale), Math.round(scene.height * scale)]
  if (canvas.width !== width) canvas.width = width
  if (canvas.height !== height) canvas.height = height
  const pen = canvas.getContext('2d')
  pen?.setTransform(scale, 0, 0, scale, 0, 0)
  if (pen !== null) drawLanes(pen, scene)
}

const neighbour = (track: Track, callId: string | null, by: number): CallBar | undefined => {
  const { bars } = track.calls
  const index = callId === null ? -1 : bars.findLastIndex(({ call }) => call.id === callId)
  return index < 0 ? bars.at(-1) : bars[index + by]
}

const steer = (
  event: KeyboardEvent,
  view: View,
  look: (view: View) => void,
  chooseNext: (by: number) => void,
): void => {
  const { from, to } = view
  const step = (to - from) / 8
  const moves: Readonly<Record<string, () => void>> = {
    ArrowLeft: () => look({ ...view, from: from - step, to: to - step }),
    ArrowRight: () => look({ ...view, from: from + step, to: to + step }),
    '+': () => look(zoomed(view, 0.6, (from + to) / 2)),
    '-': () => look(zoomed(view, 1.6, (from + to) / 2)),
    ArrowUp: () => chooseNext(-1),
    ArrowDown: () => chooseNext(1),
    PageDown: () => look({ ...view, top: view.top + 200 }),
    PageUp: () => look({ ...view, top: view.top - 200 }),
  }
  const move = moves[event.key]
  if (move === undefined) return
  event.preventDefault()
  move()
}

/** The wheel zooms, or scrolls with shift; dragging pans; a resting pointer shows the call under it. */
const usePointer = (
  canvas: { readonly current: HTMLCanvasElement | null },
  scene: { readonly current: () => Scene },
  look: (view: View) => void,
  hover: (bar: CallBar | null, x: number, y: number) => void,
): void => {
  const shown = useRef(hover)
  shown.current = hover
  useEffect(() => {
    const element = canvas.current
    if (element === null) return
    const wheel = (event: WheelEvent) => {
      event.preventDefault()
      const { view, width } = scene.current()
      const msPerPixel = (view.to - view.from) / width
      if (event.shiftKey) return look({ ...view, top: view.top + event.deltaY + event.deltaX })
      if (Math.abs(event.deltaX) > Math.abs(event.deltaY)) {
        const by = event.deltaX * msPerPixel
        return look({ ...view, from: view.from + by, to: view.to + by })
      }
      look(zoomed(view, Math.exp(event.deltaY * 0.0016), view.from + event.offsetX * msPerPixel))
    }
    const move = (event: PointerEvent) => {
      const now = scene.current()
      if (event.buttons !== 1)
        return shown.current(barAt(now, event.offsetX, event.offsetY), event.offsetX, event.offsetY)
      const by = (-event.movementX * (now.view.to - now.view.from)) / now.width
      look({ from: now.view.from + by, to: now.view.to + by, top: now.view.top - event.movementY })
    }
    const leave = () => shown.current(null, 0, 0)
    element.addEventListener('wheel', wheel, { passive: false })
    element.addEventListener('pointermove', move)
    element.addEventListener('pointerleave', leave)
    return () => {
      element.removeEventListener('wheel', wheel)
      element.removeEventListener('pointermove', move)
      element.removeEventListener('pointerleave', leave)
    }
  }, [canvas, scene, look])
}

interface TipProps {
  readonly bar: CallBar
  readonly x: number
  readonly y: number
  readonly moment: number
  readonly width: number
}

const Tip = ({ bar, x, y, moment, width }: TipProps) => {
  const { call, spans, end, endedAt } = bar
  const now = spanAt(bar, moment)
  const hasEnded = end !== null && endedAt !== null && endedAt <= moment
  const side = x > width - 300 ? { right: width - x + 12 } : { left: x + 14 }
  return (
    <div className="tip" role="tooltip" style={{ top: y + 12, ...side }}>
      <strong>
        <bdi>{call.id}</bdi>
      </strong>
      <p>
        <LaneMark lane={call.lane} /> <bdi>{call.principal}</bdi> · {countText(call.inputTokens)} tokens
      </p>
      <p>
        {hasEnded ? end : (now?.phase ?? 'not yet')} · waited {durationText(spentMs(bar, 'waiting', moment))},
        ran {durationText(spentMs(bar, 'admitted', moment) + spentMs(bar, 'streaming', moment))}
      </p>
      <ol>
        {spans
          .filter(({ from }) => from <= moment)
          .slice(-5)
          .map(({ phase, reason, from }) => (
            <li key={`${phase}${from}`}>
              <time>{clockText(from)}</time> {phase} {reason !== null && <code>{reason}</code>}
            </li>
          ))}
      </ol>
    </div>
  )
}

export default Lanes
