import { describe, expect, it, vi } from 'vitest'
import { operatorHeader, operatorToken } from '../../../src/gateway/entrance/operator.ts'
import { answerJson, answerStatus, post, secret, startSetting, startUpstream } from '../setting.ts'

const hours = {
  type: 'rate_limit_error',
  message: 'Number of request tokens has exceeded your daily rate limit',
}

const release = (url: string, scope: unknown, token: string): Promise<Response> =>
  fetch(`${url}/lanes/release`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', [operatorHeader]: token },
    body: JSON.stringify({ scope }),
  })

describe('a wait of hours', () => {
  it('is shown in /lanes, and ended by the operator and by nobody else', async () => {
    const upstream = await startUpstream()
    // It may wait that long, so it does; what may not is told at once.
    const setting = await startSetting({ upstream, policy: { primaryPendingTimeoutMs: 4 * 3_600_000 } })
    const token = operatorToken(secret)
    const answer = post(setting.scripted)
    answerStatus(await upstream.next(), 429, hours, { 'retry-after': '7200' })
    const waiting = await vi.waitFor(async () => {
      const lanes = (await (await fetch(`${setting.gateway.url}/lanes`)).json()) as {
        scopes: Array<{ scope: string; wait: { untilMs: number } | null }>
      }
      const found = lanes.scopes.find(({ wait }) => wait !== null)
      expect(found).toBeDefined()
      return found!
    })
    expect(waiting.wait!.untilMs - Date.now()).toBeGreaterThan(7_000_000)

    expect((await release(setting.gateway.url, waiting.scope, 'guessed')).status).toBe(403)
    const unknown = await release(setting.gateway.url, 'nothing', token)
    expect(unknown.status).toBe(404)
    expect(((await unknown.json()) as { detail: string }).detail).toContain(waiting.scope)
    expect((await release(setting.gateway.url, 7, token)).status).toBe(400)

    expect((await release(setting.gateway.url, waiting.scope, token)).status).toBe(200)
    answerJson(await upstream.next())
    expect((await answer).status).toBe(200)
  })
})
