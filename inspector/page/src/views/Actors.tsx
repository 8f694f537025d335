import { useMemo, useState } from 'react'
import { activeStates, type ChartEdge } from '../../../chart.ts'
import { useInspection } from '../hooks/inspection.ts'
import type { ActorsState, ActorView, Message } from '../model/actors.ts'
import { clockText, countText } from '../model/words.ts'
import { ChartView } from './Chart.tsx'
import { Empty } from './parts.tsx'

const Actors = () => {
  const { actors } = useInspection()
  const [chosen, setChosen] = useState<string | null>(null)
  if (actors.actors.size === 0) return <HowTo />
  const list = [...actors.actors.values()]
  const actor = list.find(({ sessionId }) => sessionId === chosen) ?? list.find(({ chart }) => chart !== null)
  return (
    <div className="actors">
      <section className="panel" aria-label="Actors">
        <h2>
          Actors <span className="count">{countText(list.length)}</span>
        </h2>
        <ul className="actor-list">
          {list.map((one) => (
            <li key={one.sessionId} className={one.parentId === null ? '' : 'child'}>
              <button
                type="button"
                aria-current={one === actor ? 'true' : undefined}
                onClick={() => setChosen(one.sessionId)}
              >
                <span>{one.name}</span>
                <small>{one.value === null ? one.status : valueText(one.value)}</small>
              </button>
            </li>
          ))}
        </ul>
      </section>
      <Sequence state={actors} />
      {actor?.chart != null ? (
        <Machine actor={actor} />
      ) : (
        <Empty title="No statechart">This actor is no machine, or did not say what it is.</Empty>
      )}
    </div>
  )
}

const valueText = (value: NonNullable<ActorView['value']>): string =>
  typeof value === 'string'
    ? value
    : Object.entries(value)
        .map(([key, inner]) => `${key}.${valueText(inner)}`)
        .join(', ')

const HowTo = () => {
  const url = `${location.protocol.replace('http', 'ws')}//${location.host}${location.pathname.replace(/[^/]*$/, '')}xstate`
  return (
    <Empty title="No XState app streams in">
      Point any XState 5 app here and its actors, events and states show beside your lanes:
      <code className="snippet">
        {`import { createWebSocketInspector } from '@xstate/inspect'\n\nconst { inspect } = createWebSocketInspector({ url: '${url}' })\ncreateActor(machine, { inspect }).start()`}
      </code>
    </Empty>
  )
}

const Machine = ({ actor }: { readonly actor: ActorView }) => {
  const { chart, value, previousValue, lastEvent } = actor
  const active = useMemo(
    () => (chart === null ? new Set<string>() : activeStates(chart, value)),
    [chart, value],
  )
  // The stream has only names: an arrow counts as taken when it leads from the old state to the new one by
  // the last event.
  const taken = useMemo(() => {
    if (chart === null) return new Set<string>()
    const before = activeStates(chart, previousValue)
    const wasTaken = ({ sourceId, targetId, event }: ChartEdge) =>
      before.has(sourceId) && active.has(targetId) && (event === null || event === lastEvent || event === '*')
    return new Set(chart.edges.filter(wasTaken).map(({ id }) => id))
  }, [chart, previousValue, lastEvent, active])
  return chart === null ? null : <ChartView chart={chart} active={active} taken={taken} name={actor.name} />
}

const columnWidth = 132
const rowHeight = 28
const headHeight = 30
const maxColumns = 12
const shownMessages = 200

/** The senders and receivers of the messages, in order of appearance. */
const columnsOf = (messages: ReadonlyArray<Message>): ReadonlyArray<string | null> => {
  const seen = new Set<string | null>()
  for (const { from, to } of messages) {
    seen.add(from)
    seen.add(to)
  }
  return [...seen].slice(0, maxColumns)
}

const Sequence = ({ state }: { readonly state: ActorsState }) => {
  const messages = state.messages.slice(-shownMessages)
  const columns = columnsOf(messages)
  const x = (id: string | null) => columns.indexOf(id) * columnWidth + columnWidth / 2
  const height = headHeight + messages.length * rowHeight + 12
  const nameOf = (id: string | null) => (id === null ? 'outside' : (state.actors.get(id)?.name ?? id))
  return (
    <section className="panel sequence" aria-label="Who sent what">
      <h2>
        Messages <span className="count">{countText(state.total)}</span>
      </h2>
      {messages.length === 0 ? (
        <p className="hint">Nobody has sent anything yet.</p>
      ) : (
        // biome-ignore lint/a11y/noNoninteractiveTabindex: a scrolling element must be reachable by keyboard
        <section className="sequence-scroll" tabIndex={0} aria-label="Sequence of messages">
          <svg
            width={columns.length * columnWidth + 90}
            height={height}
            role="img"
            aria-label="Sequence diagram"
          >
            {columns.map((id) => (
              <g key={id ?? 'outside'}>
                <line x1={x(id)} x2={x(id)} y1={headHeight - 6} y2={height} className="life-line" />
                <text x={x(id)} y={16} className="life-name">
                  {nameOf(id).slice(0, 18)}
                </text>
              </g>
            ))}
            {messages.map((message, index) => (
              <Arrow key={message.number} message={message} x={x} y={headHeight + index * rowHeight + 16} />
            ))}
          </svg>
        </section>
      )}
    </section>
  )
}

interface ArrowProps {
  readonly message: Message
  readonly x: (id: string | null) => number
  readonly y: number
}

const Arrow = ({ message: { from, to, eventType, at }, x, y }: ArrowProps) => {
  const [start, end] = [x(from), x(to)]
  const back = end < start
  const tip = end + (back ? 6 : -6)
  return (
    <g className="message">
      <title>{`${clockText(at)} ${eventType}`}</title>
      {start === end ? (
        <path d={`M${start},${y - 6}h22v10h-18`} className="arrow" />
      ) : (
        <path d={`M${start},${y}H${tip}`} className="arrow" />
      )}
      <path
        d={start === end ? `M${start + 1},${y + 4}l6,-4v8z` : `M${end},${y}l${back ? 7 : -7},-4v8z`}
        className="arrow-tip"
      />
      <text
        x={(start + end) / 2 + (start === end ? 28 : 0)}
        y={y - 5}
        className={start === end ? 'self' : ''}
      >
        {eventType.slice(0, 28)}
      </text>
    </g>
  )
}

export default Actors
