/**
 * A waiting call keeps the process alive until it is answered, and no other thing does: judged by real
 * processes.
 */
import { execFile } from 'node:child_process'
import { describe, expect, it } from 'vitest'
import { temporaryPath } from '../journal/fixture.ts'

const index = new URL('../../src/index.ts', import.meta.url).href

interface End {
  readonly code: number
  readonly out: string
}

/** Runs a module to its own end. A process that does not end is killed, and has no code of 0. */
const ends = (body: string, journal: string): Promise<End> =>
  new Promise((resolve) => {
    const program = `import { openHost, mapConcurrent, ManualClock } from ${JSON.stringify(index)}
const journal = ${JSON.stringify(journal)}
${body}`
    const options = { timeout: 20_000, env: { ...process.env, NODE_OPTIONS: '' } }
    const given = ['--disable-warning=ExperimentalWarning', '--input-type=module', '--eval', program]
    execFile(process.execPath, given, options, (error, out) => {
      const code = error === null ? 0 : typeof error.code === 'number' ? error.code : -1
      resolve({ code, out: out.trim() })
    })
  })

const overloaded = `const overloaded = () => Object.assign(new Error('529'), { status: 529, headers: {},
  error: { type: 'error', error: { type: 'overloaded_error', message: 'Overloaded' } } })
`

const journals: ReadonlyArray<readonly [string, () => string]> = [
  ['in memory', () => ':memory:'],
  ['on SQLite', () => temporaryPath()],
]

describe.concurrent.each(journals)('a process with a host %s', (_, pathOf) => {
  it('lives until a call that was refused once has been served', async () => {
    const end = await ends(
      `${overloaded}
const host = await openHost({ journal })
const scope = host.scope('pool')
let tries = 0
const answer = await scope.run({ lane: 'primary' }, () => {
  tries += 1
  if (tries === 1) throw overloaded()
  return 'served'
})
console.log(answer, tries)`,
      pathOf(),
    )
    expect(end).toEqual({ code: 0, out: 'served 2' })
  })

  it('lives until a wait for a place is over: of run, of admit, and of a fan-out', async () => {
    const end = await ends(
      `const host = await openHost({ journal })
const scope = host.scope('pool', { capacity: 1, primaryPendingTimeoutMs: 300 })
const permit = await scope.admit({})
const waits = [scope.run({}, () => 1), scope.admit({}), mapConcurrent([1], () => 1, { scope, width: 1 })]
const errors = await Promise.all(waits.map((wait) => wait.catch((error) => error._tag)))
console.log(errors.join())`,
      pathOf(),
    )
    expect(end).toEqual({ code: 0, out: 'PendingTimeout,PendingTimeout,PendingTimeout' })
  })

  it('lives until the time of a running call is over that nothing else ends, and until the grace of a close is', async () => {
    const end = await ends(
      `const host = await openHost({ journal })
const scope = host.scope('pool', { primaryActiveTimeoutMs: 300 })
console.log(await scope.run({}, () => new Promise(() => {})).catch((error) => error._tag))
await scope.admit({})
await host.close({ graceMs: 200 })
console.log('closed')`,
      pathOf(),
    )
    expect(end).toEqual({ code: 0, out: 'ActiveTimeout\nclosed' })
  })

  it('ends by itself while the host is idle, also with a permit out, a turn begun and timers armed', async () => {
    const end = await ends(
      `const host = await openHost({ journal })
const scope = host.scope('pool')
await scope.run({}, () => 1)
scope.beginTurn('turn')
await scope.admit({})
const stop = new AbortController()
scope.run({ lane: 'auxiliary', signal: stop.signal }, () => 1).catch(() => console.log('left'))
await new Promise((resolve) => setImmediate(resolve))
stop.abort()`,
      pathOf(),
    )
    expect(end).toEqual({ code: 0, out: 'left' })
  })
})
