/** Bodies are counted from their first byte to the moment from which they cannot be sent again, and echoed in part only. */
import { once } from 'node:events'
import { describe, expect, it, vi } from 'vitest'
import { HeldBytes } from '../../../src/gateway/passage/body.ts'
import { head, open, raw } from '../raw.ts'
import { answerJson, call, event, post, type Setting, startSetting, startUpstream } from '../setting.ts'

const heldBytes = async ({ gateway }: Setting): Promise<number> => {
  const lanes = (await (await fetch(`${gateway.url}/lanes`)).json()) as { gateway: { heldBytes: number } }
  return lanes.gateway.heldBytes
}
const holding = (setting: Setting, bytes: number) =>
  vi.waitFor(async () => expect(await heldBytes(setting)).toBe(bytes))

const body = JSON.stringify({ ...call, pad: 'x'.repeat(900) })
/** A request that says it is longer than it is. */
const unfinished = (path = '/scripted/v1/messages') =>
  head(`POST ${path}`, [
    'x-api-key: k',
    'content-type: application/json',
    `content-length: ${body.length + 1}`,
  ]) + body

describe('a body that is still arriving', () => {
  it('counts, and leaves no room for others until its client goes away', async () => {
    const upstream = await startUpstream()
    const setting = await startSetting({ upstream, heldBodiesLimitBytes: 1_500 })
    const slow = open(setting.gateway.url)
    await once(slow, 'connect')
    slow.write(unfinished())
    await holding(setting, body.length)
    const refused = await post(setting.scripted, {}, { body })
    expect([refused.status, refused.headers.get('retry-after')]).toEqual([503, '5'])
    expect(setting.gateway.counters.full).toBe(1)
    slow.destroy()
    await holding(setting, 0)
    const taken = post(setting.scripted, {}, { body })
    answerJson(await upstream.next())
    expect((await taken).status).toBe(200)
  })

  it('is answered as soon as there is no room for more of it', async () => {
    const setting = await startSetting({ heldBodiesLimitBytes: 1_024 })
    const long = `${head('POST /anthropic/v1/messages', ['content-length: 999999'])}${'x'.repeat(4_000)}`
    const { status, text } = await raw(setting.gateway.url, long, { until: (heard) => heard.includes('}}') })
    expect([status, text]).toEqual([503, expect.stringContaining('heldBodiesLimitBytes = 1024')])
    await holding(setting, 0)
  })

  it('that is too long is not kept while the rest of it is read', async () => {
    const setting = await startSetting({ bodyLimitBytes: 2_000 })
    const socket = open(setting.gateway.url)
    await once(socket, 'connect')
    socket.write(`${head('POST /anthropic/v1/messages', ['content-length: 999999'])}${'x'.repeat(4_000)}`)
    await once(socket, 'data')
    expect(await heldBytes(setting)).toBe(0)
    socket.destroy()
  })
})

describe('a body that is here', () => {
  it('counts until its answer begins, and no longer', async () => {
    const upstream = await startUpstream()
    const setting = await startSetting({ upstream })
    const answer = post(setting.scripted, {}, { body })
    const { response } = await upstream.next()
    expect(await heldBytes(setting)).toBe(body.length)
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    response.write(event('message_start'))
    const reader = (await answer).body?.getReader()
    await reader?.read()
    expect([await heldBytes(setting), setting.inFlight()]).toEqual([0, 1])
    response.end(event('message_stop'))
    await reader?.read()
  })

  it('that is passed on without admission counts as well', async () => {
    const upstream = await startUpstream()
    const setting = await startSetting({ upstream })
    const answer = post(setting.scripted, {}, { path: '/v1/messages/count_tokens', body })
    const arrival = await upstream.next()
    expect(await heldBytes(setting)).toBe(body.length)
    answerJson(arrival)
    await (await answer).text()
    await holding(setting, 0)
  })

  it.each([
    ['a refused field', { 'x-rightofway-lane': 'third' }],
    ['a route that nobody serves', {}, '/nowhere'],
  ] as ReadonlyArray<[string, Record<string, string>, string?]>)(
    'is released after %s',
    async (_, headers, path) => {
      const upstream = await startUpstream()
      const setting = await startSetting({ upstream })
      await (
        await post(path === undefined ? setting.scripted : setting.gateway.url, headers, {
          body,
          path: path ?? '/v1/messages',
        })
      ).text()
      await holding(setting, 0)
    },
  )

  it('is counted exactly, whatever is taken and dropped', () => {
    const held = new HeldBytes(10)
    expect([held.take(7), held.take(4), held.bytes, held.take(3), held.take(1)]).toEqual([
      true,
      false,
      7,
      true,
      false,
    ])
    held.drop(10)
    expect(held.bytes).toBe(0)
  })
})

describe('what a request said', () => {
  it.each<[string, string, ReadonlyArray<string>]>([
    ['a model of two megabytes', JSON.stringify({ ...call, model: 'm'.repeat(2_000_000) }), []],
    [
      'three hundred unknown fields',
      body,
      Array.from({ length: 300 }, (_, n) => `x-rightofway-${'f'.repeat(90)}${n}: v`),
    ],
    ['a coding of ten thousand characters', body, [`content-encoding: ${'g'.repeat(10_000)}`]],
  ])('is said back in part only: %s', async (_, text, fields) => {
    const setting = await startSetting()
    const own = [
      'x-api-key: k',
      'content-type: application/json',
      `content-length: ${text.length}`,
      ...fields,
    ]
    const { status, text: answer } = await raw(
      setting.gateway.url,
      head('POST /anthropic/v1/messages', own) + text,
    )
    expect([400, 415]).toContain(status)
    expect(answer.length).toBeLessThan(12_000)
  })

  it('is said back in part only to the operator too', async () => {
    const setting = await startSetting()
    const { operatorToken } = await import('../../../src/gateway/entrance/operator.ts')
    const { secret } = await import('../setting.ts')
    for (let n = 0; n < 60; n += 1) setting.host.scope(`worker-${n}-${'x'.repeat(500)}`)
    const answer = await fetch(`${setting.gateway.url}/lanes/release`, {
      method: 'POST',
      headers: { 'x-rightofway-operator': operatorToken(secret) },
      body: JSON.stringify({ scope: 's'.repeat(50_000) }),
    })
    const text = await answer.text()
    expect([answer.status, text.includes('and 40 more')]).toEqual([404, true])
    expect(text.length).toBeLessThan(30_000)
  })
})
