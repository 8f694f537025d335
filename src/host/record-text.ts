/**
 * The journal's JSON of an event and its decisions. The fields of ordinary calls are written by hand, because
 * `JSON.stringify` would take a quarter of a host's time. A law of the tests shows that both texts are equal.
 */
import type { Call, Decision, ScopeEvent } from '../../machines/index.ts'

/** Printable ASCII that JSON does not escape. */
const plain = /^[\x20\x21\x23-\x5b\x5d-\x7e]*$/

const quoted = (text: string): string => (plain.test(text) ? `"${text}"` : JSON.stringify(text))
const quotedOrNull = (text: string | null): string => (text === null ? 'null' : quoted(text))

/** JSON has no infinity, so it becomes null. */
const number = (value: number | null): string =>
  value === null || !Number.isFinite(value) ? 'null' : `${value}`

const callText = (call: Call): string =>
  `{"id":${quoted(call.id)},"turnId":${quotedOrNull(call.turnId)},"lane":"${call.lane}"` +
  `,"priorityClass":"${call.priorityClass}","principal":${quoted(call.principal)}` +
  `,"inputTokens":${number(call.inputTokens)},"outputTokens":${number(call.outputTokens)}` +
  `,"deadlineAt":${number(call.deadlineAt)}` +
  `,"dependsOn":${call.dependsOn.length === 0 ? '[]' : JSON.stringify(call.dependsOn)}` +
  `,"parentId":${quotedOrNull(call.parentId)}` +
  `${call.maxOutputTokens === undefined ? '' : `,"maxOutputTokens":${number(call.maxOutputTokens)}`}}`

const eventText = (event: ScopeEvent): string => {
  if (event.type === 'call.submitted') {
    const atOnce = event.dispatchAtOnce === undefined ? '' : `,"dispatchAtOnce":${event.dispatchAtOnce}`
    return `{"type":"call.submitted","call":${callText(event.call)}${atOnce},"at":${number(event.at)}}`
  }
  if (event.type === 'call.settled' && event.evidence === undefined) {
    const { callId, outcome, usage, owner, cause, late, at } = event
    // A provider's usage may have more fields than the core reads.
    const used = usage === undefined ? '' : `,"usage":${JSON.stringify(usage)}`
    const stance = owner === undefined ? '' : `,"owner":"${owner}"`
    const how = cause === undefined ? '' : `,"cause":"${cause}"`
    const past = late === undefined ? '' : `,"late":${late}`
    return `{"type":"call.settled","callId":${quoted(callId)},"outcome":"${outcome}"${used}${stance}${how}${past},"at":${number(at)}}`
  }
  return JSON.stringify(event)
}

const decisionText = (decision: Decision): string => {
  const { callId, verdict, reason, at, state, wakeAt, dispatched, retryAfterMs } = decision
  const wakes = wakeAt === undefined ? '' : `,"wakeAt":${number(wakeAt)}`
  const sent = dispatched === undefined ? '' : `,"dispatched":${dispatched}`
  const retries = retryAfterMs === undefined ? '' : `,"retryAfterMs":${number(retryAfterMs)}`
  return (
    `{"callId":${quoted(callId)},"verdict":"${verdict}","reason":"${reason}","at":${number(at)}` +
    `,"state":"${state}"${wakes}${sent}${retries}}`
  )
}

/** `JSON.stringify({ event, decisions })`, the fields in the order in which a runner tells them. */
export const recordText = (event: ScopeEvent, decisions: ReadonlyArray<Decision>): string => {
  let texts = ''
  for (const decision of decisions) texts += `${texts === '' ? '' : ','}${decisionText(decision)}`
  return `{"event":${eventText(event)},"decisions":[${texts}]}`
}
