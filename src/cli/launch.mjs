#!/usr/bin/env node
// The bin: plain JavaScript that Node 20 understands. It finds a Node that can run the program, and the
// program's sources or its build, and starts it.
import { spawn } from 'node:child_process'
import { existsSync } from 'node:fs'
import module, { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

const oldest = [22, 19]
const self = fileURLToPath(import.meta.url)
const root = join(dirname(self), '..', '..')

const [major, minor] = process.versions.node.split('.').map(Number)
const isNewEnough = major > oldest[0] || (major === oldest[0] && minor >= oldest[1])

if (isNewEnough) await run()
else relaunch()

async function run() {
  quieten()
  // Keeps stripped and compiled code, so that only the first start pays for both.
  module.enableCompileCache?.()
  const source = join(dirname(self), 'main.ts')
  // Node strips no types under node_modules, so an installed package runs its build.
  const isInstalled = dirname(self).split(/[\\/]/).includes('node_modules')
  if (!isInstalled && existsSync(source)) await import('./main.ts')
  else await import('../../dist/src/cli/main.js')
}

/** The user need not know that node:sqlite and type stripping are experimental. */
function quieten() {
  const emit = process.emitWarning
  process.emitWarning = (warning, ...rest) => {
    const [type] = rest
    const name = typeof type === 'object' && type !== null ? type.type : type
    if (name !== 'ExperimentalWarning') emit.call(process, warning, ...rest)
  }
}

function relaunch() {
  const node = newerNode()
  if (node === null || process.env.RIGHTOFWAY_RELAUNCHED === '1') {
    fail(
      `Node ${oldest.join('.')} or newer is needed, this is ${process.versions.node} (${process.execPath})`,
    )
    return
  }
  const env = { ...process.env, RIGHTOFWAY_RELAUNCHED: '1' }
  const child = spawn(node, [self, ...process.argv.slice(2)], { stdio: 'inherit', env })
  const signals = ['SIGINT', 'SIGTERM', 'SIGHUP']
  for (const signal of signals) process.on(signal, () => child.kill(signal))
  child.on('error', (error) => fail(`${node} does not start: ${error.message}`))
  child.on('exit', (code, signal) => {
    if (signal === null) process.exit(code ?? 1)
    for (const each of signals) process.removeAllListeners(each)
    process.kill(process.pid, signal)
  })
}

/** The Node that this package brings for its own development; null when there is none. */
function newerNode() {
  const own = join(root, 'node_modules', '.bin', 'node')
  if (existsSync(own)) return own
  try {
    const found = join(dirname(createRequire(self).resolve('node/package.json')), 'bin', 'node')
    return existsSync(found) ? found : null
  } catch {
    return null
  }
}

function fail(line) {
  console.error(`rightofway: ${line}`)
  process.exitCode = 1
}
