import { useVirtualizer } from '@tanstack/react-virtual'
import { memo, useCallback, useEffect, useLayoutEffect, useMemo, useRef } from 'react'
import { useInspection } from '../hooks/inspection.ts'
import { FilteredLog, type LogRow } from '../model/log.ts'
import { type LogFilter, lanes, noFilter, verdicts } from '../model/log-filter.ts'
import { clockText, countText, durationText } from '../model/words.ts'
import { Empty, LaneMark } from './parts.tsx'

const rowHeight = 30

const Decisions = () => {
  const inspection = useInspection()
  const { track, place } = inspection
  const { filter } = place
  const filtered = useMemo(
    () => (track === null ? null : new FilteredLog(track.log, filter)),
    [track, filter],
  )
  if (track === null || filtered === null)
    return <Empty title="No decisions yet">Every admit, defer and release of a scope is listed here.</Empty>
  const { log } = track
  const count = place.position === null ? log.rows.length : log.countUntil(place.position)
  const { indices, length } = filtered.until(count)
  return (
    <section className="panel decisions" aria-label="Decisions">
      <Filters
        filter={filter}
        change={(next) => inspection.go({ filter: next })}
        principals={[...log.principals].sort()}
        reasons={[...log.reasons].sort()}
        summary={`${countText(length)} of ${countText(count)} decisions`}
      />
      {length === 0 ? (
        <Empty title={count === 0 ? 'Nothing was decided yet' : 'No decision passes this filter'}>
          {count === 0 ? 'Decisions appear as calls come in.' : 'Clear a field to see more.'}
        </Empty>
      ) : (
        <Rows rows={log.rows} indices={indices} length={length} />
      )}
    </section>
  )
}

interface FiltersProps {
  readonly filter: LogFilter
  readonly change: (filter: LogFilter) => void
  readonly principals: ReadonlyArray<string>
  readonly reasons: ReadonlyArray<string>
  readonly summary: string
}

const Filters = ({ filter, change, principals, reasons, summary }: FiltersProps) => {
  const select = (name: keyof LogFilter, title: string, values: ReadonlyArray<string>) => (
    <label>
      <span>{title}</span>
      <select
        id={`filter-${name}`}
        value={filter[name]}
        onChange={({ target }) => change({ ...filter, [name]: target.value })}
      >
        <option value="">any</option>
        {values.map((value) => (
          <option key={value}>{value}</option>
        ))}
      </select>
    </label>
  )
  const inspection = useInspection()
  const text = useRef<HTMLInputElement>(null)
  useEffect(() => {
    if (inspection.takeFilterRequest()) text.current?.focus()
  })
  return (
    <search className="filters">
      <label className="filter-text">
        <span>Text</span>
        <input
          id="filter-text"
          ref={text}
          type="search"
          placeholder="call, principal, reason, state"
          value={filter.text}
          onChange={({ target }) => change({ ...filter, text: target.value })}
        />
      </label>
      {select('lane', 'Lane', lanes)}
      {select('verdict', 'Verdict', verdicts)}
      {select('reason', 'Reason', reasons)}
      {select('principal', 'Principal', principals)}
      <button type="button" className="plain" onClick={() => change(noFilter)} disabled={filter === noFilter}>
        Clear
      </button>
      <output aria-live="polite">{summary}</output>
    </search>
  )
}

interface RowsProps {
  readonly rows: ReadonlyArray<LogRow>
  readonly indices: ReadonlyArray<number>
  readonly length: number
}

const Rows = ({ rows, indices, length }: RowsProps) => {
  const inspection = useInspection()
  const open = useCallback((call: string) => inspection.go({ call }), [inspection])
  const ref = useRef<HTMLDivElement>(null)
  const virtual = useVirtualizer({
    count: length,
    getScrollElement: () => ref.current,
    estimateSize: () => rowHeight,
    overscan: 8,
  })
  // Newest first: when new rows come in above, the row under the reader's eye must stay.
  const before = useRef(length)
  useLayoutEffect(() => {
    const element = ref.current
    const grown = length - before.current
    before.current = length
    if (element !== null && grown > 0 && element.scrollTop > rowHeight) element.scrollTop += grown * rowHeight
  }, [length])
  return (
    // biome-ignore lint/a11y/useSemanticElements: a table of 100,000 rows has only some of them in the document
    <div className="log" role="table" aria-label="Decisions, newest first" aria-rowcount={length + 1}>
      {/* biome-ignore lint/a11y/useSemanticElements: as above */}
      <div className="log-row log-head" role="row" tabIndex={-1}>
        {['Time', 'Verdict', 'Call', 'Lane', 'Principal', 'Reason', 'State', 'Looked at again'].map(
          (title) => (
            // biome-ignore lint/a11y/useSemanticElements: as above
            // biome-ignore lint/a11y/useFocusableInteractive: it is not interactive
            <span key={title} className="log-cell" role="columnheader">
              {title}
            </span>
          ),
        )}
      </div>
      {/* biome-ignore lint/a11y/useSemanticElements: as above */}
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: a scrolling element must be reachable by keyboard */}
      <div className="log-body" ref={ref} role="rowgroup" tabIndex={0}>
        <div style={{ height: virtual.getTotalSize() }}>
          {virtual.getVirtualItems().map(({ key, index, start }) => (
            <Row
              key={key}
              open={open}
              row={rows[indices[length - 1 - index] as number] as LogRow}
              top={start}
              number={index + 2}
            />
          ))}
        </div>
      </div>
    </div>
  )
}

interface RowProps {
  readonly row: LogRow
  /** Pixels from the top of the list. */
  readonly top: number
  /** Place in the whole table, from 1. */
  readonly number: number
  readonly open: (callId: string) => void
}

/** Draws again only for another row: scrolling draws only the rows that come into view. */
const Row = memo(({ row, top, number, open }: RowProps) => {
  const { callId, verdict, reason, state, at, wakeAt, lane, principal } = row
  const cells = [
    <time key="at">{clockText(at)}</time>,
    <b key="verdict" className={`verdict ${verdict}`}>
      {verdict}
    </b>,
    <button key="call" type="button" className="call-link" onClick={() => open(callId)}>
      <bdi>{callId}</bdi>
    </button>,
    <LaneMark key="lane" lane={lane} />,
    <bdi key="principal">{principal ?? ''}</bdi>,
    <code key="reason">{reason}</code>,
    <span key="state" className="muted">
      {state}
    </span>,
    typeof wakeAt === 'number' && wakeAt > at ? `in ${durationText(wakeAt - at)}` : '',
  ]
  return (
    // biome-ignore lint/a11y/useSemanticElements: a table of 100,000 rows has only some of them in the document
    <div
      className="log-row"
      role="row"
      tabIndex={-1}
      aria-rowindex={number}
      style={{ transform: `translateY(${top}px)` }}
      data-position={row.position}
    >
      {cells.map((cell, index) => (
        // biome-ignore lint/a11y/useSemanticElements: as above
        <span key={index} className="log-cell" role="cell">
          {cell}
        </span>
      ))}
    </div>
  )
})

export default Decisions
