import { expect, it } from 'vitest'
import { hostSource, makeInspector } from '../../../inspector/server.ts'
import { parseConfig } from '../../../src/gateway/config/config.ts'
import { startGateway } from '../../../src/gateway/gateway.ts'
import { openHost } from '../../../src/host/host.ts'

it('the inspector is served under its prefix, read-only, and everything else goes on to the gateway', async () => {
  const host = await openHost()
  host.scope('worker-pool', { capacity: 2 })
  const inspector = makeInspector(hostSource(host))
  const gateway = await startGateway({
    host,
    config: parseConfig({ port: 0 }),
    secret: 'a secret of the tests',
    mount: { prefix: '/inspector', ...inspector },
  })
  try {
    const scopes = await fetch(`${gateway.url}/inspector/api/scopes`)
    expect(scopes.status).toBe(200)
    expect(await scopes.text()).toContain('worker-pool')
    const action = await fetch(`${gateway.url}/inspector/api/actions/release-wait`, {
      method: 'POST',
      body: '{"scope":"worker-pool"}',
    })
    expect(action.status).toBe(403)
    expect((await fetch(`${gateway.url}/inspectors`)).status).toBe(404)
    expect(await (await fetch(`${gateway.url}/healthz`)).json()).toMatchObject({ status: 'ok', warnings: [] })
  } finally {
    await gateway.close()
    await host.close()
  }
})
