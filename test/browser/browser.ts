/** Debian's Chromium, as the tests drive it, and the page, built for them. */
import { execFile } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { type Browser, chromium, type Page } from 'playwright-core'

const executablePath = process.env['RIGHTOFWAY_CHROMIUM'] ?? '/usr/bin/chromium'
const root = join(import.meta.dirname, '../..')

export const openBrowser = (): Promise<Browser> => {
  if (!existsSync(executablePath))
    throw new Error(`no browser at ${executablePath}; run inspector/install-browser.sh`)
  const quiet = ['--disable-quic', '--no-first-run', '--disable-background-networking']
  const args = ['--headless', '--no-sandbox', '--disable-gpu', ...quiet]
  return chromium.launch({
    executablePath,
    args: [...args, '--disable-component-update', '--disable-sync'],
  })
}

export interface BuiltPage {
  readonly folder: string
  readonly buildMs: number
  readonly remove: () => void
}

/** Builds the page as `npm run build:inspector` does, into a folder of its own. */
export const buildPage = async (): Promise<BuiltPage> => {
  const folder = mkdtempSync(join(tmpdir(), 'inspector-page-'))
  const began = performance.now()
  const command = [join(root, 'node_modules/vite/bin/vite.js'), 'build', 'inspector/page', '--outDir', folder]
  // A test runner's own environment would give a development build.
  const env = { ...process.env, NODE_ENV: 'production' }
  await promisify(execFile)(process.execPath, [...command, '--logLevel', 'error'], { cwd: root, env })
  return {
    folder,
    buildMs: performance.now() - began,
    remove: () => rmSync(folder, { recursive: true, force: true }),
  }
}

/** Names and contents of what was built. */
export const filesOf = ({ folder }: BuiltPage): ReadonlyMap<string, Buffer> =>
  new Map(
    readdirSync(folder, { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile())
      .map((entry) => join(entry.parentPath, entry.name))
      .sort()
      .map((path) => [path.slice(folder.length + 1), readFileSync(path)]),
  )

export interface Watched {
  /** Errors and warnings of the console, and exceptions. */
  readonly complaints: string[]
  readonly urls: string[]
  /** Bodies of everything that the page was answered, feeds apart. */
  readonly bodies: () => Promise<string>
}

/** Notes all that a page complains of and asks for. */
export const watch = (page: Page): Watched => {
  const complaints: string[] = []
  const urls: string[] = []
  const bodies: Array<Promise<string>> = []
  page.on('console', (message) => {
    if (message.type() === 'error' || message.type() === 'warning') complaints.push(message.text())
  })
  page.on('pageerror', (error) => complaints.push(error.message))
  page.on('request', (request) => urls.push(request.url()))
  page.on('response', (response) => {
    if (response.url().includes('/api/') && !response.url().endsWith('/feed'))
      bodies.push(response.text().catch(() => ''))
  })
  return { complaints, urls, bodies: async () => (await Promise.all(bodies)).join('\n') }
}

const artifacts = join(root, 'test-artifacts')

export const screenshot = async (page: Page, name: string): Promise<void> => {
  mkdirSync(artifacts, { recursive: true })
  await page.screenshot({ path: join(artifacts, `${name}.png`) })
}

/** Runs axe on the page as it is; answers the violations that are serious or worse. */
export const seriousViolations = async (page: Page): Promise<ReadonlyArray<string>> => {
  await page.evaluate(readFileSync(join(root, 'node_modules/axe-core/axe.min.js'), 'utf8'))
  const found = await page.evaluate<
    ReadonlyArray<{ id: string; impact: string; nodes: ReadonlyArray<{ html: string }> }>
  >('axe.run(document).then(({ violations }) => violations)')
  return found
    .filter(({ impact }) => impact === 'serious' || impact === 'critical')
    .map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html.slice(0, 160)).join(' | ')}`)
}
