/** The arena's report as a reader sees it: on a screen of 1280, from a file, without a network. */
import { mkdtempSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Browser } from 'playwright-core'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { runArena } from '../../src/simulation/arena/arena.ts'
import { reportPage } from '../../src/simulation/arena/report/page.ts'
import { callsAt, tinyScenario, workers } from '../simulation/tiny.ts'
import { openBrowser, watch } from './browser.ts'

let browser: Browser
let url: string

beforeAll(async () => {
  browser = await openBrowser()
  const scenario = tinyScenario(
    [{ rule: 'token-bucket', inputTokensPerMinute: 600, states: 'retry-after' }],
    [workers('a', 3, 150, 50), callsAt('primary', 'p', [5_000, 40_000, 70_000], 400, 100)],
  )
  const path = join(mkdtempSync(join(tmpdir(), 'report-')), 'report.html')
  writeFileSync(path, reportPage(scenario, runArena(scenario)))
  url = `file://${path}`
}, 60_000)
afterAll(() => browser?.close())

it('fits 1280, draws every plot that is in sight, and shows ours first', async () => {
  const page = await browser.newPage({ viewport: { width: 1280, height: 900 } })
  const watched = watch(page)
  await page.goto(url)
  // As text: the page's own types are no part of the tests.
  const seen = (await page.evaluate(`({
    width: document.documentElement.scrollWidth,
    cut: [...document.querySelectorAll('.wide')].filter((wide) => wide.scrollWidth > wide.clientWidth).length,
    undrawn: [...document.querySelectorAll('[data-plot]')].filter(
      (place) => place.checkVisibility() && place.querySelector('canvas') === null,
    ).length,
    drawn: document.querySelectorAll('canvas').length,
    policies: [...document.querySelectorAll('table th[scope=row]')].map((cell) => cell.textContent),
  })`)) as { readonly drawn: number; readonly policies: ReadonlyArray<string> }
  expect(seen).toMatchObject({ width: 1280, cut: 0, undrawn: 0 })
  expect(seen.drawn).toBeGreaterThanOrEqual(10)
  expect(seen.policies[0]).toBe('rightofway-adaptive')
  expect(seen.policies[2]).toBe('oracle')
  expect(watched.complaints).toEqual([])
})

it("leads from a primary's point to its story", async () => {
  const page = await browser.newPage({ viewport: { width: 1280, height: 900 } })
  const { complaints } = watch(page)
  await page.goto(url)
  const over = page.locator('[aria-label^="How long each primary"] .u-over')
  await over.scrollIntoViewIfNeeded()
  const box = (await over.boundingBox())!
  // The middle one of the three came at 40 s of 5 to 70.
  await page.mouse.click(box.x + (box.width * 35) / 65, box.y + box.height / 2)
  await expect.poll(() => page.url()).toContain('#story-rightofway-adaptive-1-0-1')
  expect(complaints).toEqual([])
  const story = page.locator('details.story[open]')
  expect(await story.locator('pre').textContent()).toMatch(/00:00:40\.000 submitted: primary/)
})
