/** What the gateway counts. Numbers only: shown in `/lanes`. */
export interface Counters {
  /** Requests of any kind. */
  requests: number
  /** Requests that asked for admission. */
  calls: number
  /** Requests passed on without admission: model lists, token counts, uploads. */
  forwarded: number
  /** Refused for what they said: bad headers, bodies, routes. */
  invalid: number
  /** Tagged with a priority class that is not known; counted as untagged. */
  unknownPriority: number
  /** Sent again by a client's SDK on its own. */
  sdkRetries: number
  /** Calls whose client went away while they waited, taken up in their places by the same request, sent again. */
  joinedRetries: number
  /** Refusals of a provider that were tried again inside admission; the client saw none of them. */
  absorbedRefusals: number
  /** Errors inside a stream that had begun well. */
  streamErrors: number
  /** Answers that ended cleanly and without their own end: nothing is learned of them. */
  truncatedAnswers: number
  /** Answers whose usage and errors nobody could read: in an unknown encoding, or damaged. */
  unreadAnswers: number
  /** Clients that stayed connected and stopped reading. */
  stalledClients: number
  /** Attempts of which no byte reached the upstream: tried again, from their places. */
  neverSent: number
  /** Calls told at once that the provider asked for a longer wait than they may have. */
  toldToWait: number
  /** WebSockets that were carried through. */
  sockets: number
  /** Clients that went away before their answer was complete. */
  clientAborts: number
  /** Attempts on which the upstream could not be reached, or broke off. */
  upstreamFailures: number
  /** Calls that gave their place to a primary before a byte had reached the client, and went on later. */
  preemptions: number
  /** Refused because the gateway holds as much as it may: bodies of calls that wait or run, or scopes. */
  full: number
  /** Faults of the gateway's own. */
  faults: number
}

export const makeCounters = (): Counters => ({
  requests: 0,
  calls: 0,
  forwarded: 0,
  invalid: 0,
  unknownPriority: 0,
  sdkRetries: 0,
  joinedRetries: 0,
  absorbedRefusals: 0,
  streamErrors: 0,
  truncatedAnswers: 0,
  unreadAnswers: 0,
  stalledClients: 0,
  neverSent: 0,
  toldToWait: 0,
  sockets: 0,
  clientAborts: 0,
  upstreamFailures: 0,
  preemptions: 0,
  full: 0,
  faults: 0,
})
