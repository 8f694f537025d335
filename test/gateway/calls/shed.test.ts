/** A scope that sheds, over HTTP: a 429 that every SDK knows how to retry. */
import { describe, expect, it } from 'vitest'
import { InvalidInput } from '../../../machines/index.ts'
import { parseConfig } from '../../../src/gateway/config/config.ts'
import { answerJson, post, startSetting, startUpstream } from '../setting.ts'

const ingest = { 'x-resource-priority': 'background_ingestion', 'x-rightofway-principal': 'a' }

describe('a call that is shed', () => {
  it('is a 429 with retry-after, and BUSY in the body where SDKs look for it', async () => {
    const upstream = await startUpstream()
    const setting = await startSetting({ upstream, policy: { capacity: 1, reserve: 0, qos: {} } })
    const first = post(setting.scripted, { 'x-resource-priority': 'interactive' })
    const arrival = await upstream.next()
    const shed = await post(setting.scripted, { ...ingest, 'idempotency-key': 'call-1' })
    expect(shed.status).toBe(429)
    expect(shed.headers.get('retry-after')).toBe('1')
    expect(shed.headers.get('x-should-retry')).toBeNull()
    expect(shed.headers.get('content-type')).toBe('application/problem+json')
    expect(shed.headers.get('x-rightofway-call-id')).toBe('call-1')
    const message = 'BUSY: the places left are kept for higher classes, retry with backoff'
    expect(await shed.json()).toEqual({
      type: 'urn:rightofway:problem:shed',
      title: 'The scope is busy',
      status: 429,
      detail: message,
      scope: setting.host.status()[0]?.scope,
      callId: 'call-1',
      reason: 'class-ceiling',
      error: { type: 'rightofway_shed', message },
    })
    expect(upstream.arrivals).toHaveLength(1)
    answerJson(arrival)
    await first
    // The same id is welcome once there is room.
    const again = post(setting.scripted, { ...ingest, 'idempotency-key': 'call-1' })
    answerJson(await upstream.next())
    expect((await again).status).toBe(200)
  })

  it('is told how long its bucket takes, in whole seconds', async () => {
    const upstream = await startUpstream()
    const qos = { burstCalls: 1, callsPerSecond: 0.1 }
    const setting = await startSetting({ upstream, policy: { capacity: 8, reserve: 0, qos } })
    const first = post(setting.scripted, ingest)
    answerJson(await upstream.next())
    await first
    const shed = await post(setting.scripted, ingest)
    expect(shed.status).toBe(429)
    expect(Number(shed.headers.get('retry-after'))).toBeGreaterThanOrEqual(9)
    expect(Number(shed.headers.get('retry-after'))).toBeLessThanOrEqual(10)
    expect(await shed.json()).toMatchObject({ reason: 'bucket-empty' })
  })
})

describe('the configuration of a gateway', () => {
  it('says for each scope whether it sheds, checked like any other field', () => {
    expect(parseConfig({ policies: { 'vllm/*': { qos: {} } } }).policies).toEqual({ 'vllm/*': { qos: {} } })
    const wrong = () => parseConfig({ policies: { 'vllm/*': { qos: { burstCalls: 0 } } } })
    expect(wrong).toThrow(InvalidInput)
    expect(wrong).toThrow(
      'config.policies["vllm/*"].qos.burstCalls: expected an integer in [1, 65536], got 0',
    )
  })
})
