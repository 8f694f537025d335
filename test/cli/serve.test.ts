import { execFile } from 'node:child_process'
import { existsSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { describe, expect, it, onTestFinished } from 'vitest'
import { folder, oldNode, Program, run } from './program.ts'

const shell = (line: string) => promisify(execFile)('/bin/sh', ['-c', line])
const curlLine = /^curl .*$/m

describe('serve', () => {
  it.each(['SIGTERM', 'SIGINT'] as const)(
    'prints a line that works in a shell, and ends well on %s',
    async (signal) => {
      const at = folder()
      const program = new Program(['serve', '--port', '0'], at)
      const [line] = await program.says(curlLine)
      const { stdout } = await shell(`${line} -s -D head.txt -o -`.replace('curl ', `cd '${at}' && curl `))
      expect(stdout).toContain('event: message_stop')
      expect(existsSync(join(at, '.rightofway', 'lanes.db'))).toBe(true)
      program.child.kill(signal)
      const { code, out, err } = await program.finished
      expect([code, err]).toEqual([0, ''])
      expect(out).toMatch(
        /^rightofway listens on http:\/\/127\.0\.0\.1:\d+\njournal {2}\.rightofway\/lanes\.db\n/,
      )
    },
  )

  it('says in its help what the gateway does for each subject', async () => {
    const { code, out } = await run(['serve', '--help'], folder())
    expect(code).toBe(0)
    const subjects = ['Refusals', 'Answers', 'Upstreams', 'Clients', 'Access', 'Disk']
    for (const subject of subjects) expect(out).toContain(`${subject}: `)
    const general = await run(['--help'], folder())
    expect(general.out).not.toContain('Refusals: ')
  })

  it.skipIf(oldNode === null)('ends well on SIGTERM when an old Node started it', async () => {
    const program = new Program(
      ['serve', '--port', '0', '--journal', ':memory:'],
      folder(),
      oldNode as string,
    )
    await program.says(curlLine)
    program.child.kill('SIGTERM')
    expect((await program.finished).code).toBe(0)
  })

  it('can be asked afterwards what became of a call, and starts again on its journal', async () => {
    const at = folder()
    const args = ['serve', '--port', '0', '--journal', 'own.db']
    const first = new Program(args, at)
    const [line] = await first.says(curlLine)
    await shell(`${line} -s -H 'idempotency-key: call-1' -H 'x-rightofway-principal: residence-a'`)
    const alive = await run(['explain', 'call-1', '--journal', 'own.db'], at)
    expect(alive.out).toMatch(/^call call-1 in emulator-anthropic\/[0-9a-f]{16}\/emulator-small: ended\n/)
    expect(alive.out).toContain('for residence-a')
    first.child.kill('SIGTERM')
    await first.finished
    const dead = await run(['explain', 'call-1', '--journal', 'own.db', '--json'], at)
    expect(JSON.parse(dead.out)).toMatchObject({ callId: 'call-1', standing: 'ended' })
    const second = new Program(args, at)
    await second.says(/journal {2}own\.db \(1 scope recovered\)/)
    second.child.kill('SIGTERM')
    await second.finished
    const unknown = await run(['explain', 'call-2', '--journal', 'own.db'], at)
    expect([unknown.code, unknown.err]).toEqual([1, 'rightofway: journal own.db knows no call "call-2"\n'])
    const checked = await run(['journal', 'check', '--journal', 'own.db'], at)
    expect([checked.code, checked.out]).toEqual([0, expect.stringMatching(/good entries of 1 scope/)])
  })

  it('waits for a journal that another process writes, says so in one line, and takes it over', async () => {
    const at = folder()
    const first = new Program(['serve', '--port', '0', '--journal', 'own.db'], at)
    await first.says(curlLine)
    const second = new Program(['serve', '--port', '0', '--journal', 'own.db'], at)
    await new Promise<void>((resolve) => second.child.stderr?.once('data', () => resolve()))
    first.child.kill('SIGTERM')
    await second.says(curlLine)
    second.child.kill('SIGTERM')
    const { err } = await second.finished
    expect(err).toMatch(/^rightofway waits: journal .*own\.db is in use by process \d+ on .*\n$/)
    expect(err.trim().split('\n').length).toBe(1)
  })

  it('refuses a port that is in use, in one line, and leaves nothing open', async () => {
    const other = createServer()
    await new Promise<void>((resolve) => other.listen(0, '127.0.0.1', resolve))
    onTestFinished(() => void other.close())
    const address = other.address() as { port: number }
    const { code, err } = await run(
      ['serve', '--port', String(address.port), '--journal', ':memory:'],
      folder(),
    )
    expect(code).toBe(1)
    expect(err).toBe(
      `rightofway: 127.0.0.1:${address.port} is in use; stop what listens there, or choose another with --port\n`,
    )
  })

  it.each([
    [
      '{"port":70000,"prot":1}',
      /^rightofway: c\.json: prot: expected only known fields, got 1; c\.json: port: expected an integer in \[0, 65535\], got 70000\n$/,
    ],
    ['{"port":', /^rightofway: config file c\.json: is not JSON: .*\n$/],
    ['[]', /^rightofway: c\.json: config: expected .*\n$/],
    [
      '{"policies":{"*":{"capacity":0}}}',
      /^rightofway: c\.json: policies\["\*"\]\.capacity: expected an integer in \[1, 65536\], got 0\n$/,
    ],
  ])('refuses the config %s in one line', async (text, line) => {
    const at = folder()
    writeFileSync(join(at, 'c.json'), text)
    const { code, out, err } = await run(['serve', '--config', 'c.json'], at)
    expect([code, out]).toEqual([1, ''])
    expect(err).toMatch(line)
    expect(existsSync(join(at, '.rightofway'))).toBe(false)
  })

  it('names a config that is not there, a flag out of its range, and a folder that is missing', async () => {
    const at = folder()
    const lines = await Promise.all([
      run(['serve', '--config', 'none.json'], at),
      run(['serve', '--port', '99999'], at),
      run(['serve', '--port', '0', '--journal', 'no/such/own.db'], at),
    ])
    expect(lines.map(({ code }) => code)).toEqual([1, 1, 1])
    const [config, port, journal] = lines.map(({ err }) => err)
    expect(config).toMatch(/^rightofway: config file none\.json: ENOENT.*\n$/)
    expect(port).toBe('rightofway: --port: expected an integer in [0, 65535], got 99999\n')
    expect(journal).toMatch(/^rightofway: journal .*own\.db: .*\n$/)
  })
})
