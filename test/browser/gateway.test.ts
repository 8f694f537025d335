/** The page as the gateway serves it, over traffic that goes through the gateway. */
import type { Browser } from 'playwright-core'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { hostSource, makeInspector } from '../../inspector/server.ts'
import { parseConfig } from '../../src/gateway/config/config.ts'
import { type Gateway, startGateway } from '../../src/gateway/gateway.ts'
import { type LaneHost, openHost } from '../../src/host/host.ts'
import { type BuiltPage, buildPage, openBrowser, screenshot, watch } from './browser.ts'

let built: BuiltPage
let browser: Browser
let host: LaneHost
let gateway: Gateway

beforeAll(async () => {
  ;[built, browser, host] = await Promise.all([buildPage(), openBrowser(), openHost()])
  const inspector = makeInspector(hostSource(host), { pageFolder: built.folder })
  gateway = await startGateway({
    host,
    // Long answers, so that there is time to look at who waits for them.
    config: parseConfig({ port: 0, emulator: { firstTokenMs: 100, perOutputTokenMs: 200 } }),
    secret: 'a secret of the tests',
    mount: { prefix: '/inspector', ...inspector },
  })
}, 60_000)
afterAll(async () => {
  await browser?.close()
  await gateway?.close()
  await host?.close()
  built?.remove()
})

const ask = (lane: string, principal: string): Promise<Response> =>
  fetch(`${gateway.url}/emulator/anthropic/v1/messages`, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      'x-api-key': 'sk-planted-key',
      'x-rightofway-lane': lane,
      'x-rightofway-principal': principal,
    },
    body: JSON.stringify({
      model: 'opus',
      max_tokens: 20,
      messages: [{ role: 'user', content: 'planted prompt' }],
    }),
  })

it('shows the state, the held auxiliaries and their reason, then the state after them', async () => {
  const page = await browser.newPage({ viewport: { width: 1280, height: 800 } })
  const watched = watch(page)
  const primary = ask('primary', 'residence-1')
  await expect.poll(() => host.status()[0]?.primary.inFlight).toBe(1)
  const held = [ask('auxiliary', 'residence-1'), ask('auxiliary', 'residence-2')]
  const scope = encodeURIComponent(host.status()[0]!.scope)
  await page.goto(`${gateway.url}/inspector/#scope=${scope}&view=statechart`)
  const waiting = page.locator('[aria-label="Waiting calls"]')
  await waiting.getByText('residence-2').waitFor()
  expect(await waiting.locator('code').allTextContents()).toContain('primary-active')
  expect(await page.locator('[data-active="true"]:not(.compound)').getAttribute('data-state')).toMatch(
    /quietRamp/,
  )
  await screenshot(page, 'gateway-held')

  await primary
  await Promise.all(held)
  await page.locator('[data-state="scope.settled"][data-active="true"]').waitFor({ timeout: 15_000 })
  const shown = (await page.content()) + (await watched.bodies())
  expect(shown).not.toMatch(/sk-planted-key|planted prompt/)
  expect(watched.complaints).toEqual([])
  await page.close()
}, 60_000)
