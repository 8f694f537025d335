import type { ServerResponse } from 'node:http'
import type { Clock } from '../clock.ts'
import type { Accepted, Provider } from './provider.ts'
import type { Answer, Dialect, HeaderFields, Reply, Vendor } from './wire/dialect.ts'
import type { Fault } from './wire/request.ts'

/** An accepted call on its way to the client. */
export interface Exchange {
  readonly provider: Provider
  readonly clock: Clock
  readonly dialect: Dialect
  readonly accepted: Accepted
  readonly reply: Reply
  readonly fault: Fault | null
  readonly response: ServerResponse
}

/** Sends an answer whole. The date is the clock's own, so that resets can be compared with it. */
export const sendAnswer = (
  response: ServerResponse,
  clock: Clock,
  answer: Answer,
  fields: HeaderFields,
): void => {
  const body = Buffer.from(JSON.stringify(answer.body))
  response.writeHead(answer.status, {
    date: new Date(clock.now()).toUTCString(),
    'content-type': 'application/json',
    'content-length': body.byteLength,
    ...fields,
    ...answer.headers,
  })
  response.end(body)
}

/** Header fields of an answer of this vendor, as the limits are now. */
export const limitFields = (
  provider: Provider,
  clock: Clock,
  vendor: Vendor,
  requestId: string,
): HeaderFields => {
  const atMs = clock.now()
  return vendor.headers(provider.headers(atMs), requestId, atMs)
}

/** Answers in one body once the whole answer exists. */
export const answerWhole = (exchange: Exchange): void => {
  const { provider, clock, dialect, accepted, reply, response } = exchange
  // As at the real door, headers describe the limits as they were at acceptance.
  const fields = limitFields(provider, clock, dialect.vendor, accepted.requestId)
  const flight = fly(exchange)
  if (exchange.fault === 'hang') return
  flight.at(accepted.endsAtMs, () => {
    if (exchange.fault === 'disconnect') {
      flight.breakOff(reply.outputTokens)
      response.destroy()
    } else if (exchange.fault === 'in-stream-error') {
      flight.breakOff(0)
      sendAnswer(response, clock, dialect.vendor.failed(accepted.requestId), fields)
    } else {
      flight.finish()
      sendAnswer(response, clock, { status: 200, headers: {}, body: dialect.whole(reply) }, fields)
    }
  })
}

/** Answers as server-sent events: the opening at acceptance, then each token when it is due. */
export const answerStream = (exchange: Exchange): void => {
  const { provider, clock, dialect, accepted, reply, response } = exchange
  const fields = limitFields(provider, clock, dialect.vendor, accepted.requestId)
  const flight = fly(exchange)
  if (exchange.fault === 'hang') return
  response.writeHead(200, {
    date: new Date(clock.now()).toUTCString(),
    'content-type': 'text/event-stream; charset=utf-8',
    'cache-control': 'no-cache',
    ...fields,
  })
  response.write(dialect.opening(reply))
  const breaksAt = breakPoint(exchange)
  let sent = 0
  /** Writes every token that is due; true when it must be called again at once. */
  const step = (): boolean => {
    const dueMs = accepted.firstTokenAtMs + sent * provider.latency.perOutputTokenMs
    if (clock.now() < dueMs) {
      flight.at(dueMs, pump)
      return false
    }
    if (sent === breaksAt) {
      breakStream(exchange, flight, sent)
      return false
    }
    if (sent === reply.outputTokens) {
      flight.finish()
      response.end(dialect.closing(reply))
      return false
    }
    const roomLeft = response.write(dialect.token(reply, sent))
    sent += 1
    flight.produced(sent)
    if (!roomLeft) response.once('drain', pump)
    return roomLeft
  }
  const pump = (): void => {
    while (!flight.ended() && step());
  }
  pump()
}

const breakPoint = ({ fault, reply }: Exchange): number | null =>
  fault === 'disconnect' || fault === 'in-stream-error' ? Math.floor(reply.outputTokens / 2) : null

const breakStream = (exchange: Exchange, flight: Flight, sent: number): void => {
  flight.breakOff(sent)
  if (exchange.fault === 'disconnect') exchange.response.destroy()
  else exchange.response.end(exchange.dialect.brokenOff(exchange.reply, sent))
}

/** The provider's side of an exchange. It ends exactly once, and also ends when the client goes away. */
interface Flight {
  ended(): boolean
  /** Reports the number of output tokens that exist now. */
  produced(outputTokens: number): void
  finish(): void
  breakOff(outputTokens: number): void
  /**
   * Calls `fn` when the clock has reached `atMs`, at once if it has already. Never calls it after the flight
   * has ended.
   */
  at(atMs: number, fn: () => void): void
}

const fly = ({ provider, clock, accepted, response }: Exchange): Flight => {
  let ended = false
  let producedTokens = 0
  let disarm = (): void => {}
  const end = (): boolean => {
    if (ended) return false
    ended = true
    disarm()
    return true
  }
  const breakOff = (outputTokens: number): void => {
    if (end()) provider.cancel({ dispatch: accepted.dispatch, atMs: clock.now(), outputTokens })
  }
  response.once('close', () => breakOff(producedTokens))
  const flight: Flight = {
    ended: () => ended,
    produced: (outputTokens) => {
      producedTokens = outputTokens
    },
    finish: () => {
      if (end()) provider.finish({ dispatch: accepted.dispatch, atMs: clock.now() })
    },
    breakOff,
    at: (atMs, fn) => {
      if (ended) return
      const waitMs = atMs - clock.now()
      // Asked again, because a timer may fire early or cover only a part of the wait.
      if (waitMs > 0) disarm = clock.after(waitMs, () => flight.at(atMs, fn))
      else fn()
    },
  }
  return flight
}
