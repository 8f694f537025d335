/** A gateway that is killed: its clients send the same requests again, under the same idempotency keys. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it, onTestFinished } from 'vitest'
import { type Emulator, startEmulator } from '../../src/emulator/index.ts'
import { folder, Program, run } from '../cli/program.ts'

interface Ground {
  readonly at: string
  readonly emulator: Emulator
  /** Starts the gateway; answers its URL and the process. */
  readonly start: () => Promise<{ readonly url: string; readonly program: Program }>
}

/** One place only, so that calls wait behind each other. */
const ground = async (): Promise<Ground> => {
  const at = folder()
  const emulator = await startEmulator({ rules: [], latency: { firstTokenMs: 0, perOutputTokenMs: 20 } })
  onTestFinished(() => emulator.close())
  const config = {
    port: 0,
    journal: 'own.db',
    upstreams: [{ name: 'provider', baseUrl: emulator.url, wire: 'anthropic' }],
    policies: { '*': { capacity: 1 } },
  }
  writeFileSync(join(at, 'c.json'), JSON.stringify(config))
  const start = async () => {
    const program = new Program(['serve', '--config', 'c.json'], at)
    const [, url] = await program.says(/listens on (\S+)/)
    return { url: url as string, program }
  }
  return { at, emulator, start }
}

const post = (url: string, id: string, outputTokens = 1, lane = 'auxiliary'): Promise<Response> =>
  fetch(`${url}/provider/v1/messages`, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      'x-api-key': 'key-a',
      'idempotency-key': id,
      'x-rightofway-lane': lane,
      'x-emulator-output-tokens': String(outputTokens),
    },
    body: JSON.stringify({ model: 'm', max_tokens: 400, messages: [{ role: 'user', content: 'hello' }] }),
  })

const until = async (holds: () => Promise<boolean>): Promise<void> => {
  for (let attempt = 0; attempt < 400; attempt += 1) {
    if (await holds()) return
    await new Promise((resolve) => setTimeout(resolve, 10))
  }
  expect(await holds()).toBe(true)
}

const waiting = async (url: string): Promise<number> => {
  const { scopes } = (await (await fetch(`${url}/lanes`)).json()) as {
    scopes: ReadonlyArray<{ primary: { waiting: number }; auxiliary: { waiting: number } }>
  }
  return scopes.reduce((sum, { primary, auxiliary }) => sum + primary.waiting + auxiliary.waiting, 0)
}

const accepted = (emulator: Emulator, id: string): number =>
  emulator.log().filter((entry) => entry.callId === id && entry.kind === 'accepted').length

it('answers a retry by what became of the first try, and sends nothing twice', {
  timeout: 120_000,
}, async () => {
  const { at, emulator, start } = await ground()
  const first = await start()
  expect((await post(first.url, 'ended')).status).toBe(200)
  const lost = ['under-way', 'held', 'turn'].map((id) => {
    const [tokens, lane] =
      id === 'under-way' ? [400, 'auxiliary'] : [1, id === 'turn' ? 'primary' : 'auxiliary']
    const answer = post(first.url, id, tokens as number, lane as string).catch((error: unknown) => error)
    return { id, answer }
  })
  await until(async () => accepted(emulator, 'under-way') === 1 && (await waiting(first.url)) === 2)
  first.program.child.kill('SIGKILL')
  await Promise.all(lost.map(({ answer }) => answer))

  const second = await start()
  const problem = async (id: string) => {
    const response = await post(second.url, id)
    const { type, detail } = (await response.json()) as { type: string; detail: string }
    return { status: response.status, retry: response.headers.get('x-should-retry'), type, detail }
  }
  expect(await problem('ended')).toEqual({
    status: 409,
    retry: 'false',
    type: 'urn:rightofway:problem:already-settled',
    detail: expect.stringContaining('call ended in provider/'),
  })
  expect(await problem('under-way')).toEqual({
    status: 409,
    retry: 'false',
    type: 'urn:rightofway:problem:outcome-unknown',
    detail: expect.stringContaining('decide whether to send it again under a new id'),
  })
  // The waiting calls were not lost: they are taken up at their places, the primary first.
  const held = post(second.url, 'held')
  await until(async () => (await waiting(second.url)) === 2)
  const turn = post(second.url, 'turn', 1, 'primary')
  expect([(await turn).status, (await held).status]).toEqual([200, 200])
  const order = emulator.log().filter(({ kind }) => kind === 'accepted')
  expect(order.map(({ callId }) => callId)).toEqual(['ended', 'under-way', 'turn', 'held'])

  const explained = await run(['explain', 'under-way', '--journal', 'own.db'], at)
  expect(explained.out).toContain('rejected: it was running when its host died (outcome-unknown')
  second.program.child.kill('SIGTERM')
  await second.program.finished
})
