import { useEffect, useState } from 'react'
import type { ExplainAnswer } from '../../../protocol.ts'
import { useInspection } from '../hooks/inspection.ts'
import { type CallBar, spentMs } from '../model/calls.ts'
import { clockText, countText, durationText } from '../model/words.ts'
import { askExplain } from '../net/api.ts'
import { Fact, LaneMark } from './parts.tsx'

/** Greatest age of the explanation of a waiting call. */
const askAgainMs = 10_000

/**
 * Asks again when the call's own history grew, and at intervals while the call waits; not with every event.
 */
const useExplanation = (callId: string, at: number | null, version: string) => {
  const [answer, setAnswer] = useState<ExplainAnswer | null>(null)
  const [problem, setProblem] = useState<string | null>(null)
  useEffect(() => {
    let isWanted = true
    const timer = setTimeout(() => {
      askExplain(callId, at).then(
        (given) => {
          if (!isWanted) return
          setAnswer(given)
          setProblem(null)
        },
        (error: Error) => {
          if (isWanted) setProblem(error.message)
        },
      )
    }, 60)
    return () => {
      isWanted = false
      clearTimeout(timer)
    }
  }, [callId, at, version])
  return { answer, problem }
}

const linesSince = (bar: CallBar | undefined): number =>
  bar === undefined ? 0 : bar.spans.length + (bar.end === null ? 0 : 1)

const Facts = ({ bar, at }: { readonly bar: CallBar; readonly at: number }) => {
  const { call, grants, end } = bar
  return (
    <dl className="facts">
      <Fact name="Lane">
        <LaneMark lane={call.lane} /> <span className="muted">{call.priorityClass}</span>
      </Fact>
      <Fact name="Principal">
        <bdi>{call.principal}</bdi>
      </Fact>
      <Fact name="Input tokens">{countText(call.inputTokens)}</Fact>
      {call.turnId !== null && (
        <Fact name="Turn">
          <bdi>{call.turnId}</bdi>
        </Fact>
      )}
      {call.dependsOn.length > 0 && (
        <Fact name="Depends on">
          <bdi>{call.dependsOn.join(', ')}</bdi>
        </Fact>
      )}
      {call.deadlineAt !== null && <Fact name="Deadline">{clockText(call.deadlineAt)}</Fact>}
      <Fact name="Waited">{durationText(spentMs(bar, 'waiting', at))}</Fact>
      <Fact name="Ran">{durationText(spentMs(bar, 'admitted', at) + spentMs(bar, 'streaming', at))}</Fact>
      <Fact name="Permits">{grants}</Fact>
      {end !== null && bar.endedAt !== null && bar.endedAt <= at && <Fact name="Ended">{end}</Fact>}
    </dl>
  )
}

/** The moment with which a line of the history begins, as `explain` writes it; null in the conclusion. */
const momentOf = (line: string): string | null => /^\d{4}-\d\d-\d\d [\d:.]+ UTC /.exec(line)?.[0] ?? null

const Line = ({ line }: { readonly line: string }) => {
  const moment = momentOf(line)
  if (moment === null)
    return (
      <li className="conclusion">
        <bdi>{line}</bdi>
      </li>
    )
  return (
    <li>
      <time>{moment.trimEnd()}</time> <bdi>{line.slice(moment.length)}</bdi>
    </li>
  )
}

/** Why a call waits, or how it ended: the text of `rightofway explain`. */
export const Why = ({ callId }: { readonly callId: string }) => {
  const inspection = useInspection()
  const { track, place, moment, nowMs } = inspection
  const bar = track?.calls.get(callId)
  const at = place.position === null ? null : moment
  const isLasting = at === null && bar !== undefined && bar.end === null
  const age = isLasting ? Math.floor(nowMs / askAgainMs) : 0
  const { answer, problem } = useExplanation(callId, at, `${linesSince(bar)}, ${age}`)
  return (
    <aside className="why" aria-label={`Why: ${callId}`}>
      <header>
        <h2>Why</h2>
        <button
          type="button"
          className="plain"
          onClick={() => inspection.go({ call: null })}
          aria-label="Close"
        >
          ✕
        </button>
      </header>
      <p className="call-id">
        <bdi>{callId}</bdi>
      </p>
      {answer !== null && (
        <p className={`standing ${answer.standing.replace(' ', '-')}`}>{answer.standing}</p>
      )}
      {problem !== null && (
        <p className="problem" role="alert">
          {problem}
        </p>
      )}
      {bar !== undefined && <Facts bar={bar} at={moment ?? bar.submittedAt} />}
      {answer !== null && (
        <ol className="story">
          {answer.lines.map((line, index) => (
            <Line key={index} line={line} />
          ))}
        </ol>
      )}
    </aside>
  )
}
