/** The gateway against nginx as a plain reverse proxy: what nginx refuses is refused, and what both pass arrives the same. */
import { expect, it } from 'vitest'
import { hasNginx, startNginx } from '../nginx.ts'
import { raw } from '../raw.ts'
import { startSetting } from '../setting.ts'
import { bytesOf, inputs, types } from './corpus.ts'
import { type RecordingUpstream, type Seen, startRecording } from './recording.ts'

/** Where the two differ on purpose, and why. */
const differences: Readonly<Record<string, string>> = {
  'fields of this hop': 'nginx passes a field that Connection names; it is of this hop, and stays behind',
  'a target that climbs': 'nginx resolves it inside its own root; the gateway has no root and refuses it',
  'a target that climbs in code': 'the same',
  'a host with a path': 'nginx refuses it, and so does the gateway, as a name that is not its own',
}

/** Requests of one connection may reach an upstream in any order: each has its answer in its own place. */
const sorted = (seen: ReadonlyArray<Seen>): ReadonlyArray<Seen> =>
  [...seen].sort((one, other) => (JSON.stringify(one) < JSON.stringify(other) ? -1 : 1))

const outcome = async (url: string, bytes: string, upstream: RecordingUpstream) => {
  const { status } = await raw(url, bytes, { untilMs: 150 })
  return { status, seen: sorted(upstream.take()) }
}

it.skipIf(!hasNginx).each(types)('reads the same requests as nginx: %s', async (type) => {
  const behindNginx = await startRecording()
  const behindGateway = await startRecording()
  const nginx = await startNginx(behindNginx.url)
  const upstream = { ...behindGateway, arrivals: [], next: () => Promise.reject(new Error('recorded')) }
  const setting = await startSetting({ upstream })
  const compared: Array<string> = []
  for (const input of inputs) {
    const bytes = bytesOf(input, type, '/scripted')
    const [one, other] = [
      await outcome(nginx, bytes, behindNginx),
      await outcome(setting.gateway.url, bytes, behindGateway),
    ]
    if (differences[input.name]) continue
    compared.push(input.name)
    // Refused by nginx: then the gateway lets nothing through either.
    if (one.seen.length === 0) expect([input.name, other.seen]).toEqual([input.name, []])
    // Passed by both: the same request arrives.
    if (other.seen.length > 0) expect([input.name, other.seen]).toEqual([input.name, one.seen])
  }
  expect(compared.length).toBeGreaterThan(45)
})
