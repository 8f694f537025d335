/** What an answer invites its client to send again is taken when it comes again, under the same id. */
import { expect, it } from 'vitest'
import { type Arrival, answerJson, answerStatus, post, startSetting, startUpstream } from '../setting.ts'

const named = { 'idempotency-key': 'k-1' }
const fault = { type: 'api_error', message: 'Internal server error' }

const ends: ReadonlyArray<[string, (arrival: Arrival) => void, number]> = [
  ['a 500 of the provider', (arrival) => answerStatus(arrival, 500, fault), 500],
  ['a connection that broke', ({ response }) => void response.destroy(), 502],
]

it.each(ends)('the same id is asked again after %s, and again', async (_, end, status) => {
  const upstream = await startUpstream()
  const setting = await startSetting({
    upstream,
    policy: { maxAttempts: 1, pacingBaseMs: 1, pacingMaxMs: 1 },
  })
  const first = post(setting.scripted)
  answerJson(await upstream.next())
  await first
  for (let round = 0; round < 3; round += 1) {
    const answer = post(setting.scripted, named)
    end(await upstream.next())
    expect((await answer).status).toBe(status)
  }
  const answer = post(setting.scripted, named)
  answerJson(await upstream.next())
  const answered = await answer
  expect([answered.status, answered.headers.get('x-rightofway-call-id')]).toEqual([200, 'k-1:retry-3'])
  // It has its answer: the id is never sent again.
  expect((await post(setting.scripted, named)).status).toBe(409)
  expect(upstream.arrivals.length).toBe(5)
})

it('an id whose call was answered at once is never sent again', async () => {
  const upstream = await startUpstream()
  const setting = await startSetting({ upstream })
  const answer = post(setting.scripted, named)
  answerJson(await upstream.next())
  expect((await answer).status).toBe(200)
  expect((await post(setting.scripted, named)).status).toBe(409)
  expect(upstream.arrivals.length).toBe(1)
})

it('an id whose call still runs is refused meanwhile', async () => {
  const upstream = await startUpstream()
  const setting = await startSetting({ upstream })
  const answer = post(setting.scripted, named)
  const arrival = await upstream.next()
  expect((await post(setting.scripted, named)).status).toBe(409)
  answerJson(arrival)
  expect((await answer).status).toBe(200)
})
