import { useState } from 'react'
import type { ScopeStatus } from '../../../../src/host/status.ts'
import { useInspection } from '../hooks/inspection.ts'
import { alarmText, countText, durationText, isPressing, scopeParts, shortCount } from '../model/words.ts'
import { Operator } from './Operator.tsx'
import { Empty, GatePill, StatePill } from './parts.tsx'

const Wait = ({ lane }: { readonly lane: ScopeStatus['primary'] }) =>
  lane.waiting === 0 ? (
    <span className="faint">none</span>
  ) : (
    <>
      {countText(lane.waiting)}
      <small>longest {durationText(lane.longestWaitMs ?? 0)}</small>
    </>
  )

/** The tightest known bound of the minute's tokens, and its name. */
const boundOf = ({ inputTokenLimit, lastRefusal, ceiling }: ScopeStatus): readonly [string, number] => {
  if (inputTokenLimit !== null) return ['limit', inputTokenLimit]
  if (lastRefusal?.statedLimit != null) return ['stated', lastRefusal.statedLimit]
  return ceiling.high === null ? ['at least', ceiling.low] : ['below', ceiling.high]
}

const CeilingCell = ({ row }: { readonly row: ScopeStatus }) => {
  const { recentInputTokens } = row
  const [how, known] = boundOf(row)
  const share = known > 0 ? Math.min(1, recentInputTokens / known) : 0
  const isBound = how !== 'at least'
  return (
    <>
      {isBound && (
        <span className="meter" aria-hidden="true">
          <i
            style={{ width: `${share * 100}%` }}
            className={share > 0.9 ? 'meter-fill high' : 'meter-fill'}
          />
        </span>
      )}
      {shortCount(recentInputTokens)}
      <small>{known > 0 ? `${how} ${shortCount(known)}` : 'ceiling unknown'}</small>
    </>
  )
}

const Alarms = ({ row }: { readonly row: ScopeStatus }) =>
  row.alarms.length === 0 ? (
    <span className="faint">none</span>
  ) : (
    <ul className="alarms">
      {row.alarms.map((alarm) => (
        <li key={alarm.kind} className={isPressing(alarm) ? 'pressing' : ''}>
          {alarmText(alarm)}
        </li>
      ))}
    </ul>
  )

const Row = ({ row, isChosen }: { readonly row: ScopeStatus; readonly isChosen: boolean }) => {
  const inspection = useInspection()
  const { title, detail } = scopeParts(row.scope)
  return (
    <tr aria-selected={isChosen}>
      <th scope="row">
        <button
          type="button"
          className="call-link"
          onClick={() => inspection.go({ view: 'statechart', scope: row.scope })}
        >
          <bdi>{title}</bdi>
        </button>
        {detail !== null && (
          <small>
            <bdi>{detail}</bdi>
          </small>
        )}
      </th>
      <td>
        <StatePill state={row.state} />
      </td>
      <td>
        <GatePill gate={row.auxiliaryGate} />
      </td>
      <td className="number">
        <Wait lane={row.primary} />
      </td>
      <td className="number">
        <Wait lane={row.auxiliary} />
      </td>
      <td className="number">
        {row.primary.inFlight + row.auxiliary.inFlight}
        <small>
          of {row.capacity}; {row.primary.inFlight} primary
        </small>
      </td>
      <td className="number">
        <CeilingCell row={row} />
      </td>
      <td>
        <Alarms row={row} />
      </td>
    </tr>
  )
}

const Scopes = () => {
  const inspection = useInspection()
  const [acting, setActing] = useState(false)
  const rows = inspection.statuses
  if (rows.length === 0)
    return <Empty title="No scopes yet">A scope appears here with its first call, and stays.</Empty>
  return (
    <section className="panel scopes" aria-label="All scopes">
      <table>
        <thead>
          <tr>
            <th scope="col">Scope</th>
            <th scope="col">State</th>
            <th scope="col">Auxiliary gate</th>
            <th scope="col" className="number">
              Primaries waiting
            </th>
            <th scope="col" className="number">
              Auxiliaries waiting
            </th>
            <th scope="col" className="number">
              In flight
            </th>
            <th scope="col" className="number">
              Tokens, last minute
            </th>
            <th scope="col">Alarms</th>
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => (
            <Row key={row.scope} row={row} isChosen={row.scope === inspection.track?.scope} />
          ))}
        </tbody>
      </table>
      {inspection.mayAct && inspection.track !== null && (
        <details
          className="operator"
          open={acting}
          onToggle={({ currentTarget }) => setActing(currentTarget.open)}
        >
          <summary>Act on {scopeParts(inspection.track.scope).title}</summary>
          {acting && <Operator scope={inspection.track.scope} />}
        </details>
      )}
    </section>
  )
}

export default Scopes
