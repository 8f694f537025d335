import { createHash } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { createWebSocketInspector } from '@xstate/inspect'
import type { Browser, BrowserContextOptions, Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { ExplainAnswer, StateAnswer } from '../../inspector/protocol.ts'
import { type AttachedInspector, attachInspector } from '../../inspector/server.ts'
import { kernelOf } from '../../src/host/internal.ts'
import { openHost } from '../../src/index.ts'
import {
  type BuiltPage,
  buildPage,
  filesOf,
  openBrowser,
  screenshot,
  seriousViolations,
  type Watched,
  watch,
} from './browser.ts'
import { type Demo, planted, startDemo } from './demo.ts'
import { runCheckout, secrets } from './xstate-app.ts'

const views = ['scopes', 'statechart', 'lanes', 'budget', 'decisions', 'actors'] as const
let built: BuiltPage
let demo: Demo
let attached: AttachedInspector
let browser: Browser

beforeAll(async () => {
  ;[built, demo, browser] = await Promise.all([buildPage(), startDemo(), openBrowser()])
  attached = await attachInspector(demo.host, { pageFolder: built.folder })
}, 60_000)
afterAll(async () => {
  await browser?.close()
  await attached?.close()
  await demo?.stop()
  built?.remove()
})

const opus = () =>
  [...kernelOf(demo.host).runners.keys()].find((name) => name.endsWith('claude-opus')) as string

/** Opens the page at a place, does something there, and closes it: nothing may have been complained of, or asked elsewhere. */
const onPage = async (
  place: string,
  use: (page: Page, watched: Watched) => Promise<void>,
  options: BrowserContextOptions = {},
): Promise<void> => {
  const page = await browser.newPage({ viewport: { width: 1280, height: 800 }, ...options })
  const watched = watch(page)
  await page.goto(`${attached.url}#scope=${encodeURIComponent(opus())}&${place}`)
  await page.locator('.live-button').waitFor()
  await use(page, watched)
  expect(watched.complaints).toEqual([])
  expect(watched.urls.filter((url) => !url.startsWith(attached.url))).toEqual([])
  await page.close()
}

const digestsOf = (files: ReadonlyMap<string, Buffer>) =>
  [...files].map(([name, bytes]) => `${name} ${createHash('sha256').update(bytes).digest('hex')}`)

const positionOf = async (page: Page): Promise<number> =>
  Number(new URLSearchParams(new URL(page.url()).hash.slice(1)).get('at'))

const json = async <A>(path: string): Promise<A> =>
  (await fetch(`${attached.url}${path}`)).json() as Promise<A>

describe('live', () => {
  it('shows the state changing as calls come and go, the arrows taken, and why auxiliaries are held', async () => {
    await onPage('view=statechart', async (page) => {
      const states = new Set<string>()
      const reasons = new Set<string>()
      const lit = new Set<string>()
      const active = page.locator('[data-active="true"]:not(.compound)')
      await active.waitFor()
      const isSeen = () =>
        states.has('scope.primaryPending') &&
        states.has('scope.quietRamp.active') &&
        reasons.has('primary-active') &&
        lit.size > 2
      for (const until = Date.now() + 40_000; Date.now() < until && !isSeen(); await sleep(40)) {
        const now = await active.getAttribute('data-state')
        if (now !== null) states.add(now)
        for (const text of await page.locator('[aria-label="Waiting calls"] tr code').allTextContents())
          reasons.add(text)
        for (const text of await page.locator('.chart-label [data-lit="true"]').allTextContents())
          lit.add(text)
      }
      expect([...states]).toEqual(expect.arrayContaining(['scope.primaryPending', 'scope.quietRamp.active']))
      expect([...reasons]).toContain('primary-active')
      expect(lit.size).toBeGreaterThan(2)
    })
  }, 60_000)

  it('shows nested states with their parent', async () => {
    await onPage('view=statechart', async (page) => {
      await page.locator('[data-state="scope.quietRamp"][data-active="true"]').waitFor({ timeout: 15_000 })
      expect(await page.locator('[data-state^="scope.quietRamp."]').count()).toBe(3)
    })
  }, 30_000)

  it('lists every scope with its state, waits and ceiling', async () => {
    await onPage('view=scopes', async (page) => {
      const rows = page.locator('.scopes tbody tr')
      await rows.nth(1).waitFor()
      expect(await rows.count()).toBe(2)
      const text = (await rows.allTextContents()).join('\n')
      expect(text).toContain('claude-opus')
      expect(text).toMatch(/at least|stated|below/)
    })
  })
})

describe('a page that is too slow', () => {
  it('is told how much it lost, and has it from the journal', async () => {
    const host = await openHost()
    host.scope('pool', { capacity: 2 })
    const small = await attachInspector(host, { pageFolder: built.folder, ringSize: 16 })
    const page = await browser.newPage()
    const { complaints } = watch(page)
    await page.goto(`${small.url}#view=statechart`)
    await page.getByText('event 1 of 1').waitFor()
    const runner = kernelOf(host).runners.get('pool')
    for (let turn = 0; turn < 500; turn += 1)
      runner?.tell({ type: 'foreground.changed', active: turn % 2 === 0 })
    await page.getByText('484 frames dropped').waitFor()
    await page.getByText('event 501 of 501').waitFor()
    expect(complaints).toEqual([])
    await page.close()
    await small.close()
    await host.close()
  })
})

describe('a host that is restarted with another journal', () => {
  it('has a page that forgets the last one, and shows what is there now', async () => {
    const first = await openHost()
    first.scope('pool', { capacity: 2 })
    const before = await attachInspector(first, { pageFolder: built.folder })
    const page = await browser.newPage()
    await page.goto(`${before.url}#view=statechart`)
    await page.getByText('event 1 of 1').waitFor()
    const permit = await first.scope('pool').admit({ id: 'of-the-first', lane: 'primary' })
    await page.getByText('of-the-first').first().waitFor()
    const { port } = new URL(before.url)
    await before.close()
    permit.settle({ outcome: 'completed' })
    await first.close()
    const second = await openHost()
    second.scope('pool', { capacity: 7 })
    const after = await attachInspector(second, { pageFolder: built.folder, port: Number(port) })
    await page.getByText('0 of 7').waitFor({ timeout: 20_000 })
    expect(await page.content()).not.toContain('of-the-first')
    await page.close()
    await after.close()
    await second.close()
  }, 40_000)
})

describe('time travel', () => {
  it('pauses, and an earlier moment is the state that a replay gives', async () => {
    await onPage('view=statechart', async (page) => {
      await page.locator('[data-active="true"]').first().waitFor()
      await page.getByRole('button', { name: 'Pause' }).click()
      const slider = page.getByRole('slider', { name: 'Moment' })
      const [first, last] = [
        Number(await slider.getAttribute('min')),
        Number(await slider.getAttribute('max')),
      ]
      for (const share of [0.2, 0.5, 0.8]) {
        await slider.fill(String(Math.round(first + (last - first) * share)))
        const position = await positionOf(page)
        const { snapshot } = await json<StateAnswer>(
          `api/state?scope=${encodeURIComponent(opus())}&position=${position}`,
        )
        const shown = page.locator('.summary .state')
        await expect.poll(() => shown.textContent()).toBe(snapshot?.state)
        const waiting = await page.locator('[aria-label="Waiting calls"] .call-link').allTextContents()
        const [primaries, auxiliaries] = (['primary', 'auxiliary'] as const).map((lane) =>
          snapshot?.waiting.filter(({ call }) => call.lane === lane).map(({ call }) => call.id),
        )
        expect(waiting).toEqual([...primaries!, ...auxiliaries!])
        const flying = await page.locator('[aria-label="Calls in flight"] .call-link').allTextContents()
        expect(flying).toEqual(snapshot?.inFlight.map(({ call }) => call.id))
        const decided = { at: snapshot?.at }
        const replayed = await json<StateAnswer>(
          `api/state?scope=${encodeURIComponent(opus())}&at=${decided.at}`,
        )
        expect(replayed.at).toBe(snapshot?.at)
      }
    })
  })

  it('stays where it is while more happens, steps event by event, and is live again with one click', async () => {
    await onPage('view=statechart', async (page) => {
      await page.locator('[data-active="true"]').first().waitFor()
      await page.keyboard.press('Space')
      const paused = await positionOf(page)
      const before = await page.locator('.standing-now time').textContent()
      await sleep(700)
      expect(await page.locator('.standing-now time').textContent()).toBe(before)
      await page.keyboard.press(',')
      const earlier = await positionOf(page)
      expect(earlier).toBeLessThan(paused)
      await page.keyboard.press('.')
      expect(await positionOf(page)).toBe(paused)
      await page.getByRole('button', { name: 'One event back' }).click()
      expect(await positionOf(page)).toBe(earlier)
      await page.getByRole('button', { name: 'Live' }).click()
      expect(page.url()).not.toContain('at=')
      await expect.poll(() => page.locator('.standing-now time').textContent()).not.toBe(before)
    })
  })

  it('moves the slider by whole events with the keys', async () => {
    await onPage('view=statechart', async (page) => {
      await page.locator('[data-active="true"]').first().waitFor()
      await page.keyboard.press('Space')
      const paused = await positionOf(page)
      await page.getByRole('slider', { name: 'Moment' }).focus()
      await page.keyboard.press('ArrowLeft')
      const earlier = await positionOf(page)
      expect(earlier).toBeLessThan(paused)
      await page.keyboard.press('ArrowRight')
      expect(await positionOf(page)).toBe(paused)
      await page.keyboard.press('Home')
      expect(await positionOf(page)).toBeLessThan(earlier)
    })
  })

  it('has a link to the scope that was chosen for it, and says so of a scope that nobody knows', async () => {
    const page = await browser.newPage()
    await page.goto(attached.url)
    await page.locator('.summary .state').waitFor()
    expect(new URLSearchParams(new URL(page.url()).hash.slice(1)).get('scope')).not.toBeNull()
    await page.goto(`${attached.url}#scope=nowhere&view=scopes`)
    await page.getByText('This host knows no scope nowhere').waitFor()
    await page.close()
  })

  it('has a link that leads to the same scope and moment', async () => {
    const moment = { hash: '', state: '' as string | null, time: '' as string | null }
    const read = async (page: Page) => ({
      hash: new URL(page.url()).hash,
      state: await page.locator('.summary .state').textContent(),
      time: await page.locator('.standing-now time').textContent(),
    })
    await onPage('view=statechart', async (page) => {
      await page.locator('[data-active="true"]').first().waitFor()
      await page.keyboard.press('Space')
      for (let step = 0; step < 4; step += 1) await page.keyboard.press('<')
      Object.assign(moment, await read(page))
    })
    await onPage(moment.hash.slice(1), async (page) => {
      await page.locator('.summary .state').waitFor()
      expect(await read(page)).toEqual({
        ...moment,
        hash: expect.stringContaining(moment.hash.split('at=')[1] ?? '?'),
      })
    })
  })

  it('shows the other scopes at that moment, too', async () => {
    await onPage('view=scopes', async (page) => {
      await page.locator('.scopes tbody tr').nth(1).waitFor()
      const slider = page.getByRole('slider', { name: 'Moment' })
      await slider.fill(String(Number(await slider.getAttribute('min')) + 60))
      await expect.poll(() => page.locator('.scopes tbody').textContent()).toContain('idle')
      const at = Number(await slider.inputValue())
      const { scopes } = await json<{ scopes: ReadonlyArray<{ facts: { state: string } }> }>(
        `api/scopes?at=${at}`,
      )
      await expect
        .poll(() => page.locator('.scopes tbody .state').allTextContents())
        .toEqual(scopes.map(({ facts }) => facts.state))
    })
  })
})

describe('decisions', () => {
  it('are filtered by lane, verdict, reason, principal and text', async () => {
    await onPage('view=decisions', async (page) => {
      const cells = (column: number) =>
        page.locator(`.log-body .log-row .log-cell:nth-child(${column})`).allTextContents()
      await page.locator('.log-body .log-row').nth(5).waitFor()
      await page.locator('#filter-lane').selectOption('primary')
      await expect.poll(async () => [...new Set(await cells(4))]).toEqual(['primary'])
      await page.locator('#filter-verdict').selectOption('release')
      await expect.poll(async () => [...new Set(await cells(2))]).toEqual(['release'])
      await page.getByRole('button', { name: 'Clear' }).click()
      await page.locator('#filter-principal').selectOption('compression')
      await expect.poll(async () => [...new Set(await cells(5))]).toEqual(['compression'])
      await page.getByRole('button', { name: 'Clear' }).click()
      await page.locator('#filter-reason').selectOption('primary-active')
      await expect.poll(async () => [...new Set(await cells(6))]).toEqual(['primary-active'])
      await page.getByRole('button', { name: 'Clear' }).click()
      await page.keyboard.press('Tab')
      await page.locator('#filter-text').fill('TURN-1')
      await expect.poll(async () => (await cells(3)).every((id) => id.startsWith('turn-1'))).toBe(true)
      await page.locator('#filter-text').fill('nothing like this')
      await page.getByText('No decision passes this filter').waitFor()
    })
  })

  it('take the cursor into their filter with "/", and a link carries the filter', async () => {
    await onPage('view=scopes', async (page) => {
      await page.locator('.scopes tbody tr').first().waitFor()
      await page.keyboard.press('/')
      const filter = page.locator('#filter-text')
      await expect.poll(() => page.evaluate('document.activeElement?.id')).toBe('filter-text')
      await page.keyboard.type('turn-1')
      expect(await filter.inputValue()).toBe('turn-1')
      expect(new URL(page.url()).hash).toMatch(/view=decisions.*text=turn-1/)
    })
    await onPage('view=decisions&text=turn-1&lane=primary', async (page) => {
      await page.locator('.log-body .log-row').first().waitFor()
      expect(await page.locator('#filter-text').inputValue()).toBe('turn-1')
      expect(await page.locator('#filter-lane').inputValue()).toBe('primary')
    })
  })

  it('keep every letter and every choice, however fast they follow each other', async () => {
    await onPage('view=decisions', async (page) => {
      await page.locator('.log-body .log-row').nth(5).waitFor()
      // All in one task: no frame is drawn between.
      const fields = await page.evaluate(`(() => {
        const text = document.querySelector('#filter-text')
        text.focus()
        for (const letter of 'turn-1') document.execCommand('insertText', false, letter)
        for (const [name, value] of [['lane', 'primary'], ['verdict', 'admit']]) {
          const field = document.querySelector('#filter-' + name)
          field.value = value
          field.dispatchEvent(new Event('change', { bubbles: true }))
        }
        return ['text', 'lane', 'verdict'].map((name) => document.querySelector('#filter-' + name).value)
      })()`)
      expect(fields).toEqual(['turn-1', 'primary', 'admit'])
      expect(new URL(page.url()).hash).toMatch(/lane=primary&verdict=admit&text=turn-1/)
    })
  })

  it('lead to why: the words of explain', async () => {
    await onPage('view=decisions', async (page) => {
      const link = page.locator('.log-body .call-link').first()
      await link.waitFor()
      await page.keyboard.press('Space')
      const callId = await link.textContent()
      await link.click()
      const why = page.getByRole('complementary', { name: `Why: ${callId}` })
      await why.locator('.story li').first().waitFor()
      const at = await page.getByRole('slider', { name: 'Moment' }).inputValue()
      const { lines } = await json<ExplainAnswer>(`api/explain?call=${callId}&at=${at}`)
      expect(await why.locator('.story li').allTextContents()).toEqual(lines)
      await page.keyboard.press('Escape')
      await why.waitFor({ state: 'detached' })
    })
  })
})

describe('lanes and budget', () => {
  it('draw the calls; pointing at one tells its reasons, and a click tells all', async () => {
    await onPage('view=lanes', async (page) => {
      const canvas = page.locator('.lanes canvas')
      await canvas.waitFor()
      await page.keyboard.press('Space')
      const box = (await canvas.boundingBox())!
      const tip = page.locator('.tip')
      for (let x = 60; x < box.width - 40 && !(await tip.isVisible()); x += 12) {
        await page.mouse.move(box.x + x, box.y + 66)
        await sleep(15)
      }
      expect(await tip.textContent()).toMatch(/primary.*waited/s)
      await page.mouse.down()
      await page.mouse.up()
      await page.locator('.why .story li').first().waitFor()
      await canvas.focus()
      for (const key of ['+', '-', 'ArrowLeft', 'ArrowRight', 'ArrowDown', 'ArrowUp'])
        await page.keyboard.press(key)
      await page.getByRole('button', { name: 'All' }).click()
    })
  })

  it('plot tokens and calls', async () => {
    await onPage('view=budget', async (page) => {
      await page.locator('.uplot canvas').nth(1).waitFor()
      await expect
        .poll(() => page.locator('.plot').first().getAttribute('aria-label'))
        .toMatch(/last minute \d{3,}/)
    })
  })
})

describe('an XState app', () => {
  it('streams in and is drawn: actors, statechart, who sent what', async () => {
    await onPage('view=actors', async (page, watched) => {
      await page.getByText('No XState app streams in').waitFor()
      const { inspect, stop } = createWebSocketInspector({
        url: `${attached.url.replace('http', 'ws')}xstate`,
      })
      runCheckout(inspect)
      await page.locator('[data-state="checkout.shipped"][data-active="true"]').waitFor()
      await page.locator('.message', { hasText: 'paid' }).waitFor()
      expect(await page.locator('.life-name').allTextContents()).toEqual(
        expect.arrayContaining(['checkout', 'payment']),
      )
      await screenshot(page, 'actors')
      const seen = `${await page.content()}\n${await watched.bodies()}`
      for (const secret of secrets) expect(seen).not.toContain(secret)
      stop()
    })
  })
})

describe('in both colour schemes', () => {
  it.each(['light', 'dark'] as const)(
    '%s: every view is free of serious accessibility faults, and of content',
    async (colorScheme) => {
      const first = await demo.primaries[0]
      await onPage(
        `view=scopes&call=${first}`,
        async (page, watched) => {
          let seen = ''
          for (const [index, view] of views.entries()) {
            await page.keyboard.press(String(index + 1))
            await page
              .locator('.header nav [aria-current]')
              .filter({ hasText: new RegExp(view, 'i') })
              .waitFor()
            await sleep(400)
            expect(await seriousViolations(page), view).toEqual([])
            await screenshot(page, `${view}-${colorScheme}`)
            seen += await page.content()
          }
          seen += await watched.bodies()
          for (const secret of planted) expect(seen).not.toContain(secret)
        },
        { colorScheme },
      )
    },
    60_000,
  )

  it('follows the system until it is told otherwise, and remembers', async () => {
    await onPage(
      'view=scopes',
      async (page) => {
        const dark = () =>
          page.evaluate<boolean>('getComputedStyle(document.documentElement).colorScheme === "dark"')
        const background = () =>
          page.evaluate<string>('getComputedStyle(document.querySelector(".header")).backgroundColor')
        const system = await background()
        await page.keyboard.press('t')
        expect(await background()).not.toBe(system)
        await page.keyboard.press('t')
        expect(await dark()).toBe(true)
        expect(await background()).toBe(system)
        await page.reload()
        await page.locator('.live-button').waitFor()
        expect(await dark()).toBe(true)
      },
      { colorScheme: 'dark' },
    )
  })

  it.each([
    ['light', 'statechart', 1280, 800],
    ['dark', 'lanes', 1920, 1080],
    ['light', 'budget', 1920, 1080],
    ['dark', 'statechart', 1920, 1080],
  ] as const)('%s %s fits %i wide: nothing scrolls sideways', async (colorScheme, view, width, height) => {
    await onPage(
      `view=${view}`,
      async (page) => {
        await page.locator('[data-active="true"], .lanes canvas, .uplot canvas').first().waitFor()
        await sleep(500)
        expect(await page.evaluate<number>('document.documentElement.scrollWidth')).toBeLessThanOrEqual(width)
        expect(
          await page.evaluate<number>(
            'document.querySelector(".main").scrollWidth - document.querySelector(".main").clientWidth',
          ),
        ).toBe(0)
        await screenshot(page, `${view}-${colorScheme}-${width}`)
      },
      { colorScheme, viewport: { width, height } },
    )
  })
})

describe('the built page', () => {
  it('is built in seconds, twice to the same bytes, and keeps its budget', async () => {
    const twice = [await buildPage(), await buildPage()]
    const [files, again] = twice.map(filesOf) as [ReadonlyMap<string, Buffer>, ReadonlyMap<string, Buffer>]
    expect(digestsOf(again)).toEqual(digestsOf(files))
    for (const one of twice) one.remove()
    const bytesOf = (matches: (name: string) => boolean) =>
      [...files].filter(([name]) => matches(name)).reduce((sum, [, bytes]) => sum + bytes.byteLength, 0)
    const isWorker = (name: string) => name.includes('elk-worker')
    const first = bytesOf((name) => /index-.*\.(js|css)$|\.html$/.test(name))
    const all = bytesOf((name) => !isWorker(name))
    const worker = bytesOf(isWorker)
    const kb = (bytes: number) => `${Math.round(bytes / 1_024)} KB`
    console.log(
      `page: first load ${kb(first)}, all views ${kb(all)}, layout worker ${kb(worker)}; built in ${Math.round(built.buildMs)} ms`,
    )
    expect(first).toBeLessThan(480 * 1_024)
    expect(all).toBeLessThan(840 * 1_024)
    expect(worker).toBeLessThan(1_700 * 1_024)
  }, 60_000)

  it('paints within a second on loopback', async () => {
    const paints: number[] = []
    for (let load = 0; load < 3; load += 1) {
      await onPage('view=statechart', async (page) => {
        paints.push(
          await page.evaluate<number>(
            'new Promise((resolve) => new PerformanceObserver((list) => resolve(list.getEntriesByName("first-contentful-paint")[0]?.startTime ?? 1e9)).observe({ type: "paint", buffered: true }))',
          ),
        )
      })
    }
    console.log(`first contentful paint: ${paints.map((ms) => Math.round(ms)).join(', ')} ms`)
    // Others may be using this machine: the page is as fast as it was at best.
    expect(Math.min(...paints)).toBeLessThan(1_000)
  })
})
