/** A queue behind one call that runs, and clients that come, go away and come back. */

import { HashMap } from 'effect'
import { expect, vi } from 'vitest'
import { ManualClock } from '../../src/clock.ts'
import { kernelOf } from '../../src/host/internal.ts'
import {
  type Arrival,
  answerJson,
  call,
  post,
  type ScriptedUpstream,
  type Setting,
  startSetting,
  startUpstream,
} from './setting.ts'

export const one = { capacity: 1, reserve: 0, pacingBaseMs: 1, pacingMaxMs: 5, quietWindowMs: 0 } as const
const startMs = 1_800_000_000_000
export const retry = { 'x-stainless-retry-count': '1' }

export const saying = (content: string) => JSON.stringify({ ...call, messages: [{ role: 'user', content }] })
export const said = ({ body }: Arrival): string => JSON.parse(body).messages[0].content

export type Headers = Readonly<Record<string, string>>
export type Rest = { readonly path?: string; readonly body?: string; readonly signal?: AbortSignal }

/** A request on its way; in an object, since a promise of a promise is awaited whole. */
export interface Sent {
  readonly answer: Promise<Response>
}

export interface Queue {
  readonly upstream: ScriptedUpstream
  readonly setting: Setting
  readonly clock: ManualClock
  /** The call that runs and holds the only place: it is answered 200. */
  endFirst(): Promise<void>
  /** Posts a call that waits behind those before it. */
  enqueue(headers?: Headers, rest?: Rest): Promise<Sent>
  /** The same, and its client goes away. */
  leave(headers?: Headers, rest?: Rest): Promise<void>
  /** Posts a request, and checks that it took up a place that was left. */
  join(headers?: Headers, rest?: Rest): Promise<Sent>
  ids(): ReadonlyArray<string>
}

/** One call runs; nothing else can until it ends. Only the test moves its clock. */
export const startQueue = async (): Promise<Queue> => {
  const upstream = await startUpstream()
  const clock = new ManualClock(startMs)
  const setting = await startSetting({ upstream, policy: one, clock })
  const { counters } = setting.gateway
  const first = post(setting.scripted, {}, { body: saying('first') })
  const running = await upstream.next()
  const enqueue = async (headers: Headers = {}, rest: Rest = {}) => {
    const before = setting.waiting()
    const answer = post(setting.scripted, headers, rest)
    answer.catch(() => {})
    await vi.waitFor(() => expect(setting.waiting()).toBe(before + 1))
    return { answer }
  }
  return {
    upstream,
    setting,
    clock,
    endFirst: async () => {
      answerJson(running)
      expect((await first).status).toBe(200)
    },
    enqueue,
    leave: async (headers, rest) => {
      const client = new AbortController()
      const before = counters.clientAborts
      const { answer } = await enqueue(headers, { ...rest, signal: client.signal })
      client.abort()
      await expect(answer).rejects.toThrow()
      await vi.waitFor(() => expect(counters.clientAborts).toBe(before + 1))
    },
    join: async (headers, rest) => {
      const before = counters.joinedRetries
      const answer = post(setting.scripted, headers, rest)
      await vi.waitFor(() => expect(counters.joinedRetries).toBe(before + 1))
      return { answer }
    },
    ids: () =>
      [...kernelOf(setting.host).runners.values()].flatMap(({ context }) => [
        ...HashMap.keys(context.waiting),
      ]),
  }
}

/** Nothing runs and nothing waits. */
export const idle = (setting: Setting) =>
  vi.waitFor(() => expect([setting.inFlight(), setting.waiting()]).toEqual([0, 0]))
