/** What is signed for another host cannot survive a proxy: it is refused at the door, with the cure. */
import { describe, expect, it } from 'vitest'
import { head, raw } from '../raw.ts'
import { answerJson, post, startSetting, startUpstream } from '../setting.ts'

const credential = 'Credential=AKIDEXAMPLE/20260101/us-east-1/bedrock/aws4_request'
const signature = `Signature=${'f'.repeat(64)}`
const signed = (headers: string, algorithm = 'AWS4-HMAC-SHA256') => ({
  authorization: `${algorithm} ${credential}, SignedHeaders=${headers}, ${signature}`,
})
const presigned = (headers: string) =>
  `/model/m/converse?X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-SignedHeaders=${headers}&X-Amz-Signature=${'f'.repeat(64)}`

describe('a request that is signed', () => {
  it.each<[string, Record<string, string>, string]>([
    ['as the SDKs do', signed('content-type;host;x-amz-date'), '/model/m/converse'],
    [
      'in another case and algorithm',
      signed('Host;x-amz-date', 'AWS4-ECDSA-P256-SHA256'),
      '/model/m/converse',
    ],
    [
      'without saying what it covers',
      { authorization: `AWS4-HMAC-SHA256 ${credential}` },
      '/model/m/converse',
    ],
    ['in its target', {}, presigned('host')],
    ['in its target, encoded', {}, presigned('content-type%3Bhost')],
  ])('%s for this host is refused with the reason and the cure', async (_, headers, path) => {
    const upstream = await startUpstream()
    const setting = await startSetting({ upstream })
    const {
      status,
      headers: told,
      text,
    } = await post(setting.scripted, headers, { path }).then(async (answer) => ({
      status: answer.status,
      headers: answer.headers,
      text: await answer.text(),
    }))
    expect([status, told.get('x-should-retry')]).toEqual([400, 'false'])
    expect(text).toContain('urn:rightofway:problem:signed-for-another-host')
    expect(text).toContain('AWS_BEARER_TOKEN_BEDROCK')
    expect(text).not.toContain('AKIDEXAMPLE')
    expect([upstream.arrivals.length, setting.gateway.counters.invalid]).toEqual([0, 1])
  })

  it('is refused as a request of any method, and as a WebSocket', async () => {
    const upstream = await startUpstream()
    const setting = await startSetting({ upstream, wire: 'openai' })
    const field = `Authorization: ${signed('host').authorization}`
    const keyed = [
      'Connection: Upgrade',
      'Upgrade: websocket',
      'Sec-WebSocket-Version: 13',
      'Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==',
    ]
    for (const fields of [[field], [field, ...keyed]]) {
      const { status } = await raw(setting.gateway.url, head('GET /scripted/v1/responses', fields))
      expect(status).toBe(400)
    }
    expect(upstream.arrivals.length).toBe(0)
  })

  it.each<[string, Record<string, string>, string]>([
    ['over fields that travel', signed('content-type;x-amz-date'), '/model/m/converse'],
    ['by a bearer key', { authorization: 'Bearer AWS4-like' }, '/model/m/converse'],
    ['by nobody', {}, '/model/m/converse?signature=1'],
  ])('%s passes', async (_, headers, path) => {
    const upstream = await startUpstream()
    const setting = await startSetting({ upstream })
    const answer = post(setting.scripted, headers, { path })
    answerJson(await upstream.next())
    expect((await answer).status).toBe(200)
  })
})
