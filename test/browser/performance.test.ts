/** How the page bears a long history: 10,000 calls in the timeline, 100,000 decisions in the log. */
import type { Browser, Page } from 'playwright-core'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { createActor } from 'xstate'
import { type AttachedInspector, attachInspector } from '../../inspector/server.ts'
import { type PolicyInput, parsePolicy, providerScope, type ScopeEvent } from '../../machines/index.ts'
import { openHost } from '../../src/index.ts'
import type { StoredEntry } from '../../src/journal/journal.ts'
import { openMemoryJournal } from '../../src/journal/memory.ts'
import { type BuiltPage, buildPage, openBrowser, screenshot, watch } from './browser.ts'

const scope = 'ingestion-pool'
const calls = 50_020
const startMs = Date.UTC(2026, 0, 1)

/** Entries as a host writes them: every call is deferred once and released once. */
const longHistory = (): { readonly entries: ReadonlyArray<StoredEntry>; readonly decisions: number } => {
  const actor = createActor(providerScope, { input: { scope } }).start()
  const entries: StoredEntry[] = []
  let decided = 0
  const tell = (event: ScopeEvent) => {
    actor.send(event)
    const { decisions } = actor.getSnapshot().context.scope
    decided += decisions.length
    entries.push({
      position: entries.length + 1,
      scope,
      at: event.at,
      record: JSON.stringify({ event, decisions }),
    })
  }
  const policy: PolicyInput = { capacity: 12, reserve: 2, settledRetention: 0 }
  tell({ type: 'policy.changed', at: startMs, policy: parsePolicy(policy) })
  const callOf = (number: number) =>
    ({
      id: `ingest-${String(number).padStart(6, '0')}`,
      turnId: null,
      lane: 'auxiliary',
      priorityClass: 'background_ingestion',
      principal: `tenant-${number % 7}`,
      inputTokens: 500 + ((number * 7919) % 3_000),
      outputTokens: 0,
      deadlineAt: null,
      dependsOn: [],
      parentId: null,
    }) as const
  const ahead = 40
  for (let number = 0; number < calls + ahead; number += 1) {
    const at = startMs + number * 23
    if (number < calls) tell({ type: 'call.submitted', at, call: callOf(number) })
    if (number < ahead) continue
    const [oldest] = [...actor.getSnapshot().context.scope.inFlight].map(([callId]) => callId).sort()
    if (oldest !== undefined) tell({ type: 'call.settled', at: at + 9, callId: oldest, outcome: 'completed' })
  }
  return { entries, decisions: decided }
}

let built: BuiltPage
let attached: AttachedInspector
let browser: Browser
let decisions = 0
let close: () => Promise<void>

beforeAll(async () => {
  const history = longHistory()
  decisions = history.decisions
  const journal = openMemoryJournal({
    history: { entries: history.entries, checkpoints: [] },
    keepEntries: Number.POSITIVE_INFINITY,
  })
  const host = await openHost({ journal })
  close = () => host.close()
  ;[built, browser] = await Promise.all([buildPage(), openBrowser()])
  attached = await attachInspector(host, { pageFolder: built.folder })
}, 120_000)
afterAll(async () => {
  await browser?.close()
  await attached?.close()
  await close?.()
  built?.remove()
})

interface Frames {
  readonly medianMs: number
  readonly p95Ms: number
  /** Time that the page's own code took per frame. */
  readonly workMs: number
}

/** Does something in every one of 90 frames; answers how far apart the frames were. */
const framesWhile = (page: Page, action: string): Promise<Frames> =>
  page.evaluate<Frames>(`new Promise((resolve) => {
    const gaps = []; const work = []; let last = performance.now(); let frame = 0
    const next = () => {
      const now = performance.now(); gaps.push(now - last); last = now
      ;(${action})(frame)
      work.push(performance.now() - now)
      frame += 1
      if (frame < 90) return requestAnimationFrame(next)
      const sort = (list) => list.slice(2).sort((one, other) => one - other)
      const sorted = sort(gaps)
      const at = (list, share) => list[Math.floor(list.length * share)]
      resolve({ medianMs: at(sorted, 0.5), p95Ms: at(sorted, 0.95), workMs: at(sort(work), 0.5) })
    }
    requestAnimationFrame(next)
  })`)

const told = (what: string, { medianMs, p95Ms, workMs }: Frames): void =>
  console.log(
    `${what}: median ${medianMs.toFixed(1)} ms, p95 ${p95Ms.toFixed(1)} ms between frames; ${workMs.toFixed(1)} ms of handlers`,
  )

const openPage = async (view: string): Promise<Page> => {
  const page = await browser.newPage({ viewport: { width: 1280, height: 800 } })
  await page.goto(`${attached.url}#view=${view}`)
  return page
}

it('scrolls and zooms 10,000 calls smoothly', async () => {
  const page = await openPage('lanes')
  const { complaints } = watch(page)
  const canvas = page.locator('.lanes canvas')
  await canvas.waitFor({ timeout: 60_000 })
  await expect
    .poll(() => page.locator('.lanes-head').textContent(), { timeout: 60_000 })
    .toMatch(/1\d,\d{3} calls/)
  await page.getByRole('button', { name: 'All' }).click()
  await screenshot(page, 'performance-lanes')
  const wheel = (delta: string) =>
    `(frame) => document.querySelector('.lanes canvas').dispatchEvent(new WheelEvent('wheel', { deltaY: ${delta}, clientX: 640, clientY: 400, bubbles: true, cancelable: true }))`
  const zoom = await framesWhile(page, wheel('frame < 45 ? -20 : 20'))
  told('10,000 calls, zooming', zoom)
  const pan = await framesWhile(
    page,
    `(frame) => document.querySelector('.lanes canvas').dispatchEvent(new WheelEvent('wheel', { deltaX: frame % 60 < 30 ? 25 : -25, bubbles: true, cancelable: true }))`,
  )
  told('10,000 calls, panning', pan)
  expect(zoom.medianMs).toBeLessThan(50)
  expect(pan.medianMs).toBeLessThan(50)
  expect(complaints).toEqual([])
  await page.close()
}, 120_000)

it('scrolls and filters 100,000 decisions smoothly, and scrubs through them', async () => {
  expect(decisions).toBeGreaterThanOrEqual(100_000)
  const page = await openPage('decisions')
  const { complaints } = watch(page)
  const earlier = page.getByRole('button', { name: /earlier events/ })
  await earlier.waitFor({ timeout: 60_000 })
  while (await earlier.isVisible()) {
    const before = await page.locator('.filters output').textContent()
    await earlier.click()
    await expect
      .poll(() => page.locator('.filters output').textContent(), { timeout: 60_000 })
      .not.toBe(before)
  }
  await expect
    .poll(
      async () =>
        Number((await page.locator('.filters output').textContent())?.split(' ')[0]?.replaceAll(',', '')),
      { timeout: 60_000 },
    )
    .toBe(decisions)
  const scroll = await framesWhile(
    page,
    `(frame) => { document.querySelector('.log-body').scrollTop += 240 }`,
  )
  told(`${decisions} decisions, scrolling`, scroll)
  const jump = await framesWhile(
    page,
    `(frame) => { const body = document.querySelector('.log-body'); body.scrollTop = (body.scrollHeight * ((frame * 37) % 100)) / 100 }`,
  )
  told(`${decisions} decisions, jumping`, jump)
  const began = performance.now()
  await page.locator('#filter-principal').selectOption('tenant-3')
  await expect
    .poll(() => page.locator('.filters output').textContent(), { interval: 5 })
    .toMatch(/^14,2\d\d of/)
  console.log(
    `filter of ${decisions} decisions: ${Math.round(performance.now() - began)} ms, the driver included`,
  )
  expect(await page.locator('.log-body .log-row').count()).toBeLessThan(80)
  await page.keyboard.press('2')
  await page.locator('.summary .state').waitFor()
  const slider = page.getByRole('slider', { name: 'Moment' })
  const scrub = await framesWhile(
    page,
    `(frame) => {
      const input = document.querySelector('.scrubber input')
      const to = Number(input.min) + (Number(input.max) - Number(input.min)) * ((frame * 13) % 90) / 90
      Object.getOwnPropertyDescriptor(HTMLInputElement.prototype, 'value').set.call(input, String(Math.round(to)))
      input.dispatchEvent(new Event('input', { bubbles: true }))
    }`,
  )
  told('scrubbing the statechart', scrub)
  expect(Number(await slider.inputValue())).toBeGreaterThan(startMs)
  expect(scroll.medianMs).toBeLessThan(50)
  expect(jump.medianMs).toBeLessThan(50)
  expect(scrub.medianMs).toBeLessThan(120)
  expect(complaints).toEqual([])
  await page.close()
}, 180_000)
