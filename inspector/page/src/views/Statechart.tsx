import { HashMap } from 'effect'
import { useMemo, useState } from 'react'
import { type ScopeContext, scopeChart, waitReason } from '../../../../machines/index.ts'
import { scopeStatus } from '../../../../src/host/scope-facts.ts'
import { activeStates, type Chart, type ChartEdge, chartOf } from '../../../chart.ts'
import { useInspection } from '../hooks/inspection.ts'
import { worstFirst } from '../model/waiting.ts'
import { clockText, countText, durationText, stateWords } from '../model/words.ts'
import { ChartView } from './Chart.tsx'
import { CallLink, Empty, Fact, GatePill, LaneMark, StatePill } from './parts.tsx'

/** The chart comes from the running machine; no part is drawn by hand. */
const chart = chartOf(scopeChart.config)

const Statechart = () => {
  const { track, index } = useInspection()
  const entry = track?.entries[index]
  // A past moment stays the same while new events come.
  const now = useMemo(
    () =>
      track === null ? null : { context: track.contextAt(index), moveIndex: track.lastMove(index), entry },
    [track, index, entry],
  )
  if (chart === null || now === null)
    return <Empty title="No scope to show">A scope appears with its first call.</Empty>
  return <Now chart={chart} context={now.context} moveIndex={now.moveIndex} />
}

interface NowProps {
  readonly chart: Chart
  readonly context: ScopeContext
  readonly moveIndex: number
}

const Now = ({ chart, context, moveIndex }: NowProps) => {
  const { track } = useInspection()
  const { state } = context
  const active = useMemo(() => {
    const [outer, inner] = state.split('.') as [string, string?]
    return activeStates(chart, inner === undefined ? outer : { [outer]: inner })
  }, [chart, state])
  const taken = useMemo(() => {
    const arrows = moveIndex < 0 ? [] : (track?.arrowsAt(moveIndex) ?? [])
    const wasTaken = ({ sourceId, targetId, guard }: ChartEdge) =>
      arrows.some((one) => one.sourceId === sourceId && one.targetId === targetId && one.guard === guard)
    return new Set(chart.edges.filter(wasTaken).map(({ id }) => id))
  }, [chart, track, moveIndex])
  return (
    <div className="now">
      <ChartView chart={chart} active={active} taken={taken} name={context.scope} />
      <div className="now-side">
        <Summary context={context} moveIndex={moveIndex} />
        <Waiting context={context} />
        <InFlight context={context} />
      </div>
    </div>
  )
}

const phaseFact = ({ state, phase }: ScopeContext, at: number): readonly [string, number] | null => {
  if (state === 'primaryPending' && phase.graceUntilMs > at) return ['Grace ends in', phase.graceUntilMs - at]
  if (state === 'primaryPending' && phase.patienceUntilMs > at)
    return ['Patience ends in', phase.patienceUntilMs - at]
  if (state === 'quietRamp.quiet' && phase.quietUntilMs > at)
    return ['Tried again in', phase.quietUntilMs - at]
  if (state === 'settled' && phase.lingerUntilMs > at) return ['Idle in', phase.lingerUntilMs - at]
  return null
}

const Summary = ({ context, moveIndex }: { readonly context: ScopeContext; readonly moveIndex: number }) => {
  const { track, nowMs } = useInspection()
  const { episode } = context
  const {
    state,
    wait,
    counters,
    auxiliaryGate,
    placesTaken,
    capacity,
    nowMs: at,
  } = scopeStatus(context, nowMs)
  const phase = phaseFact(context, at)
  const move = track?.entries[moveIndex]?.event
  return (
    <section className="panel summary" aria-label="Now">
      <p className="summary-state">
        <StatePill state={state} />
        <GatePill gate={auxiliaryGate} />
      </p>
      <p className="muted">{stateWords[state]}</p>
      <dl className="facts">
        {move !== undefined && (
          <Fact name="Entered by">
            <code>{move.type}</code> at {clockText(move.at)}
          </Fact>
        )}
        {phase !== null && <Fact name={phase[0]}>{durationText(phase[1])}</Fact>}
        {wait !== null && (
          <Fact name="Provider asked to wait">
            {durationText(wait.untilMs - at)} <span className="muted">{wait.kind}</span>
          </Fact>
        )}
        <Fact name="Places taken">
          {placesTaken} of {capacity}
        </Fact>
        {episode !== null && (
          <Fact name="Episode">
            {durationText(at - episode.startedAt)}, {countText(episode.auxiliariesDeferred)} auxiliaries
            deferred
          </Fact>
        )}
        <Fact name="Refused by provider">{countText(counters.refusedByProvider)}</Fact>
        <Fact name="Completed">
          {countText(counters.completed)} of {countText(counters.submitted)} submitted
        </Fact>
      </dl>
    </section>
  )
}

/** Calls that are shown first, and with each "more". */
const shownCalls = 60

const More = ({ hidden, show }: { readonly hidden: number; readonly show: () => void }) =>
  hidden <= 0 ? null : (
    <p className="hint">
      and {countText(hidden)} more{' '}
      <button type="button" className="link" onClick={show}>
        show {countText(Math.min(hidden, shownCalls))}
      </button>
    </p>
  )

const Waiting = ({ context }: { readonly context: ScopeContext }) => {
  const inspection = useInspection()
  const at = Math.max(context.at, inspection.nowMs)
  const [shown, setShown] = useState(shownCalls)
  const calls = worstFirst(context)
  return (
    <section className="panel" aria-label="Waiting calls">
      <h2>
        Waiting <span className="count">{countText(calls.length)}</span>
      </h2>
      {calls.length === 0 ? (
        <p className="hint">Nobody waits.</p>
      ) : (
        <table className="compact">
          <tbody>
            {calls.slice(0, shown).map((waiting) => {
              const why = waitReason(context, waiting)
              return (
                <tr key={waiting.call.id}>
                  <td>
                    <CallLink id={waiting.call.id} open={(call) => inspection.go({ call })} />
                    <small>
                      <LaneMark lane={waiting.call.lane} /> <bdi>{waiting.call.principal}</bdi>
                    </small>
                  </td>
                  <td>
                    <code>{why.reason}</code>
                    {why.wakeAt !== null && why.wakeAt > at && (
                      <small>within {durationText(why.wakeAt - at)}</small>
                    )}
                  </td>
                  <td className="number">{durationText(at - waiting.submittedAt)}</td>
                </tr>
              )
            })}
          </tbody>
        </table>
      )}
      <More hidden={calls.length - shown} show={() => setShown(shown + shownCalls)} />
    </section>
  )
}

const InFlight = ({ context }: { readonly context: ScopeContext }) => {
  const inspection = useInspection()
  const at = Math.max(context.at, inspection.nowMs)
  const calls = [...HashMap.values(context.inFlight)].sort((one, other) => one.seq - other.seq)
  return (
    <section className="panel" aria-label="Calls in flight">
      <h2>
        In flight <span className="count">{countText(calls.length)}</span>
      </h2>
      {calls.length === 0 ? (
        <p className="hint">Nothing runs.</p>
      ) : (
        <table className="compact">
          <tbody>
            {calls.slice(0, shownCalls).map(({ call, stage, grant, grantedAt, preempted }) => (
              <tr key={call.id}>
                <td>
                  <CallLink id={call.id} open={(id) => inspection.go({ call: id })} />
                  <small>
                    <LaneMark lane={call.lane} /> <bdi>{call.principal}</bdi>
                  </small>
                </td>
                <td>
                  <code>{preempted ? 'preempted' : stage}</code>
                  <small>{grant}</small>
                </td>
                <td className="number">{durationText(at - grantedAt)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
    </section>
  )
}

export default Statechart
