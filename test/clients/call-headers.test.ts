/** The headers of a request say the same of its call to the gateway and to `lanedFetch`, and the provider sees none of them. */
import { describe, expect, it, onTestFinished } from 'vitest'
import { withCall } from '../../src/clients/call-context.ts'
import { lanedFetch } from '../../src/clients/laned-fetch.ts'
import { kernelOf } from '../../src/host/internal.ts'
import { type Call, InvalidInput, type LaneHost, ManualClock, openHost } from '../../src/index.ts'
import { startSetting, startUpstream } from '../gateway/setting.ts'

const body = JSON.stringify({ model: 'm', input: 'Hi' })

/** What each table row is as a call; a status where it is refused at the door. */
const rows: ReadonlyArray<readonly [string, Record<string, string>, Partial<Call> | 400]> = [
  ['nothing', {}, { lane: 'primary', priorityClass: 'orchestration', principal: 'default', turnId: null }],
  [
    'a background class',
    { 'x-resource-priority': 'background_ingestion' },
    { lane: 'auxiliary', priorityClass: 'background_ingestion' },
  ],
  [
    'a class that nobody knows',
    { 'x-resource-priority': 'urgent' },
    { lane: 'primary', priorityClass: 'orchestration' },
  ],
  ['a lane', { 'x-rightofway-lane': 'auxiliary' }, { lane: 'auxiliary' }],
  ['a lane in capitals', { 'X-RightOfWay-Lane': 'AUXILIARY' }, { lane: 'auxiliary' }],
  ['who asks', { 'x-rightofway-principal': 'tenant-a' }, { principal: 'tenant-a' }],
  ['a turn', { 'x-rightofway-turn': 'turn-1' }, { turnId: 'turn-1' }],
  ['a size', { 'x-rightofway-input-tokens': '4321' }, { inputTokens: 4_321 }],
  ['a deadline', { 'x-rightofway-deadline-ms': '60000' }, { deadlineAt: 1_060_000 }],
  ['an id', { 'idempotency-key': 'job-7' }, { id: 'job-7' }],
  [
    'several at once',
    { 'x-resource-priority': 'hydration', 'x-rightofway-principal': 'b' },
    { priorityClass: 'hydration', principal: 'b' },
  ],
  ['a lane that is none', { 'x-rightofway-lane': 'fast' }, 400],
  ['a size that is none', { 'x-rightofway-input-tokens': 'many' }, 400],
  ['a deadline of no time', { 'x-rightofway-deadline-ms': '0' }, 400],
  ['a field that is misspelt', { 'x-rightofway-tennant': 'a' }, 400],
]

const own = /^x-rightofway-|^x-resource-priority$/

const callsOf = (host: LaneHost): Array<Call> => {
  const calls: Array<Call> = []
  kernelOf(host).observe(({ event }) => {
    if (event.type === 'call.submitted') calls.push(event.call)
  })
  return calls
}

const upstreamAnswering = async () => {
  const upstream = await startUpstream()
  const answerNext = async () => {
    const { response } = await upstream.next()
    response.writeHead(200, { 'content-type': 'application/json', 'x-rightofway-call-id': 'not ours' })
    response.end('{"usage":{"input_tokens":1,"output_tokens":1}}')
  }
  return { upstream, answerNext }
}

const opened = async (): Promise<LaneHost> => {
  const host = await openHost({ clock: new ManualClock(1_000_000) })
  onTestFinished(() => host.close())
  return host
}

describe.each(['the gateway', 'lanedFetch'])('to %s', (face) => {
  it.each(rows)('%s', async (_, headers, expected) => {
    const { upstream, answerNext } = await upstreamAnswering()
    const { host, url, fetch } = await (face === 'the gateway'
      ? startSetting({ upstream, clock: new ManualClock(1_000_000) }).then(({ host, scripted }) => ({
          host,
          url: scripted,
          fetch: globalThis.fetch,
        }))
      : opened().then((host) => ({ host, url: upstream.url, fetch: lanedFetch(host) })))
    const calls = callsOf(host)
    const post = { method: 'POST', headers: { 'content-type': 'application/json', ...headers }, body }
    const [response] = await Promise.all([
      fetch(`${url}/v1/responses`, post),
      expected === 400 ? null : answerNext(),
    ])
    const answer = await response.text()
    if (expected === 400) {
      expect(response.status).toBe(400)
      const [field] = Object.keys(headers)
      expect(JSON.parse(answer)).toMatchObject({
        type: 'urn:rightofway:problem:bad-field',
        problems: [{ field }],
      })
      expect(calls).toEqual([])
      return expect(upstream.arrivals).toEqual([])
    }
    expect(response.status).toBe(200)
    expect(calls).toMatchObject([expected])
    expect(response.headers.get('x-rightofway-call-id')).toBe(calls[0]!.id)
    expect(response.headers.get('x-rightofway-attempts')).toBe('1')
    expect(response.headers.get('x-rightofway-waited-ms')).toBe('0')
    expect(response.headers.get('x-rightofway-warning')).toBe(
      headers['x-resource-priority'] === 'urgent'
        ? 'x-resource-priority names no known class; the call counts as untagged'
        : null,
    )
    expect(Object.keys(upstream.arrivals[0]!.request.headers).filter((name) => own.test(name))).toEqual([])
  })
})

describe('a fetch with lanes', () => {
  const said = { 'x-rightofway-principal': 'tenant-a', 'x-resource-priority': 'background_ingestion' }

  it.each([
    ['that asks no model', 'GET', undefined, {}],
    ['that its caller lets pass', 'POST', body, { call: () => null }],
  ])('strips the headers of a request %s too, also of a Request', async (_, method, sent, options) => {
    const { upstream, answerNext } = await upstreamAnswering()
    const fetch = lanedFetch(await opened(), options)
    const init = {
      method,
      headers: { ...said, 'x-kept': '1' },
      ...(sent === undefined ? {} : { body: sent }),
    }
    const address = `${upstream.url}/v1/models`
    for (const ask of [() => fetch(address, init), () => fetch(new Request(address, init))]) {
      await Promise.all([ask(), answerNext()])
      const { headers } = upstream.arrivals.at(-1)!.request
      expect(headers).toMatchObject({ 'x-kept': '1' })
      expect(Object.keys(headers).filter((name) => own.test(name))).toEqual([])
    }
  })

  it('takes headers before what the code around it says, and an own description before both', async () => {
    const { upstream, answerNext } = await upstreamAnswering()
    const host = await opened()
    const calls = callsOf(host)
    const post = { method: 'POST', headers: said, body }
    for (const options of [{}, { call: () => ({ principal: 'described' }) }])
      await withCall({ principal: 'around', turnId: 't' }, () =>
        Promise.all([lanedFetch(host, options)(`${upstream.url}/v1/responses`, post), answerNext()]),
      )
    expect(calls).toMatchObject([
      { principal: 'tenant-a', turnId: 't', lane: 'auxiliary' },
      { principal: 'described', turnId: null, lane: 'auxiliary' },
    ])
  })

  it('throws for a bad header where its caller prefers', async () => {
    const fetch = lanedFetch(await opened(), { refusals: 'throw' })
    const bad = fetch('http://127.0.0.1:1/v1/responses', {
      method: 'POST',
      headers: { 'x-rightofway-lane': 'fast' },
      body,
    })
    await expect(bad).rejects.toThrow(InvalidInput)
    await expect(bad).rejects.toThrow('x-rightofway-lane: expected one of primary, auxiliary, got "fast"')
  })
})
