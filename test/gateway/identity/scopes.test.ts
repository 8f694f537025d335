/** Which scopes are remembered: those whose keys a provider has accepted, and not more than there may be. */

import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it, onTestFinished, vi } from 'vitest'
import { parseConfig } from '../../../src/gateway/config/config.ts'
import { startGateway } from '../../../src/gateway/gateway.ts'
import { openHost } from '../../../src/host/host.ts'
import { kernelOf } from '../../../src/host/internal.ts'
import { run } from '../../cli/program.ts'
import {
  answerJson,
  answerStatus,
  call,
  overloaded,
  post,
  type ScriptedUpstream,
  type Setting,
  secret,
  startSetting,
  startUpstream,
} from '../setting.ts'

const invalidKey = { type: 'authentication_error', message: 'invalid x-api-key' }
const tooMany = { type: 'rate_limit_error', message: 'slow down' }

const remembered = async ({ gateway }: Setting) => {
  const lanes = (await (await fetch(`${gateway.url}/lanes`)).json()) as {
    gateway: { scopes: { remembered: number; dropped: number; refused: number } }
  }
  return lanes.gateway.scopes
}

const use = async (
  setting: Setting,
  upstream: ScriptedUpstream,
  key: string,
  status = 200,
): Promise<Response> => {
  const answer = post(setting.scripted, { 'x-api-key': key })
  const arrival = await upstream.next()
  if (status === 200) answerJson(arrival)
  else answerStatus(arrival, status, invalidKey)
  return answer
}

it.each([401, 403])(
  'strangers whose keys the provider answers with %i leave nothing behind',
  async (status) => {
    const upstream = await startUpstream()
    const setting = await startSetting({ upstream, scopesLimit: 3 })
    await use(setting, upstream, 'honest')
    for (let number = 0; number < 10; number += 1) {
      expect((await use(setting, upstream, `stranger-${number}`, status)).status).toBe(status)
    }
    await vi.waitFor(async () =>
      expect(await remembered(setting)).toEqual({ remembered: 1, dropped: 0, refused: 10 }),
    )
    expect(setting.host.status().length).toBe(1)
    expect((await kernelOf(setting.host).journal.scopes()).length).toBe(1)
    expect((await use(setting, upstream, 'another')).status).toBe(200)
  },
)

it('a key that was accepted once keeps its scope when it is refused later', async () => {
  const upstream = await startUpstream()
  const setting = await startSetting({ upstream })
  await use(setting, upstream, 'key')
  await use(setting, upstream, 'key', 401)
  expect(await remembered(setting)).toEqual({ remembered: 1, dropped: 0, refused: 0 })
})

it('tokens that rotate push out the ones used longest ago, and never one that is in use', async () => {
  const upstream = await startUpstream()
  const setting = await startSetting({ upstream, scopesLimit: 3 })
  const running = post(setting.scripted, { 'x-api-key': 'running' })
  const first = await upstream.next()
  for (let number = 0; number < 20; number += 1) {
    expect((await use(setting, upstream, `token-${number}`)).status).toBe(200)
  }
  expect(await remembered(setting)).toEqual({ remembered: 3, dropped: 18, refused: 0 })
  await vi.waitFor(() => expect(setting.host.status().length).toBe(3))
  const lanes = (await (await fetch(`${setting.gateway.url}/lanes`)).json()) as {
    gateway: { estimates: object }
  }
  expect(Object.keys(lanes.gateway.estimates).length).toBeLessThanOrEqual(3)
  answerJson(first)
  expect((await running).status).toBe(200)
})

it('a wait that the provider imposed is not forgotten for the sake of others', async () => {
  const upstream = await startUpstream()
  const setting = await startSetting({ upstream, scopesLimit: 2, policy: { maxAttempts: 1 } })
  const answer = post(setting.scripted, { 'x-api-key': 'held' })
  answerStatus(await upstream.next(), 429, tooMany, { 'retry-after': '3600' })
  await (await answer).text()
  for (let number = 0; number < 6; number += 1) await use(setting, upstream, `token-${number}`)
  const waits = setting.host.status().filter(({ wait }) => wait !== null)
  expect(waits.length).toBe(1)
})

it('with every scope in use a call of another key is asked to come back, not sent away for good', async () => {
  const upstream = await startUpstream()
  const setting = await startSetting({ upstream, scopesLimit: 1 })
  const running = post(setting.scripted, { 'x-api-key': 'one' })
  const first = await upstream.next()
  const refused = await post(setting.scripted, { 'x-api-key': 'two' })
  expect([refused.status, refused.headers.get('retry-after')]).toEqual([503, '5'])
  expect(refused.headers.get('x-should-retry')).toBeNull()
  answerJson(first)
  await running
  await vi.waitFor(() => expect(setting.inFlight()).toBe(0))
  expect((await use(setting, upstream, 'two')).status).toBe(200)
})

it('those of an earlier run count, and give way as well; journal scopes lists and drops', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'rightofway-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  const journal = join(folder, 'lanes.db')
  const before = await openHost({ journal })
  for (const name of ['a', 'b', 'c']) {
    await before.scope(`p/${name}/m`).run({ id: `call-${name}` }, async () => undefined)
  }
  await before.close()
  const listed = await run(['journal', 'scopes', '--journal', journal], folder)
  expect(listed.out).toMatch(/^p\/a\/m: at rest, checkpoint of .*\np\/b\/m: /)
  const dropped = await run(['journal', 'scopes', '--journal', journal, '--drop', 'p/b/m'], folder)
  expect([dropped.code, dropped.out]).toEqual([0, `journal ${journal}: dropped p/b/m\n`])
  const unknown = await run(['journal', 'scopes', '--journal', journal, '--drop', 'p/b/m'], folder)
  expect([unknown.code, unknown.err]).toEqual([1, `rightofway: journal ${journal} knows no scope p/b/m\n`])
  const upstream = await startUpstream()
  const host = await openHost({ journal })
  const upstreams = [{ name: 'scripted', baseUrl: upstream.url, wire: 'anthropic' }]
  const gateway = await startGateway({
    host,
    secret,
    config: parseConfig({ port: 0, scopesLimit: 2, upstreams }),
  })
  const answer = fetch(`${gateway.url}/scripted/v1/messages`, { method: 'POST', body: JSON.stringify(call) })
  answerJson(await upstream.next())
  expect((await answer).status).toBe(200)
  await vi.waitFor(async () => expect((await kernelOf(host).journal.scopes()).length).toBe(2))
  await gateway.close()
  await host.close()
})

it('an overload says nothing against a key', async () => {
  const upstream = await startUpstream()
  const setting = await startSetting({ upstream, policy: { pacingBaseMs: 60_000, pacingMaxMs: 60_000 } })
  const answer = post(setting.scripted, { 'x-rightofway-deadline-ms': '400' })
  answerStatus(await upstream.next(), 529, overloaded)
  await (await answer).text()
  expect((await remembered(setting)).remembered).toBe(1)
})
