/** No request is hidden in another one: what nobody asked for never reaches an upstream, and the next one is answered as itself. */
import { expect, it } from 'vitest'
import { raw } from '../raw.ts'
import { startSetting } from '../setting.ts'
import { bytesOf, inputs, types } from './corpus.ts'
import { startRecording } from './recording.ts'

/** Where the length of the body is not certain, nothing of the request counts. */
const ambiguous =
  /^(?:length and chunks|chunks and length|two lengths|a list of lengths|a length with|a negative|a hexa|an endless|a blank before|chunked is not|two codings|a coding behind|a line end|a carriage|a NUL|a chunk of)/

it.each(types)('as %s', async (type) => {
  const recording = await startRecording()
  const upstream = { ...recording, arrivals: [], next: () => Promise.reject(new Error('recorded')) }
  const setting = await startSetting({ upstream })
  for (const input of inputs) {
    const { status } = await raw(setting.gateway.url, bytesOf(input, type, '/scripted'), { untilMs: 150 })
    const seen = recording.take()
    // What the gateway routed itself has lost its first segment; what was carried inside another request has not.
    const hidden = seen.filter(({ target }) => target.startsWith('/scripted'))
    expect([input.name, hidden]).toEqual([input.name, []])
    if (ambiguous.test(input.name)) expect([input.name, status, seen]).toEqual([input.name, 400, []])
    if (seen.length > 0) expect([input.name, [100, 200].includes(status)]).toEqual([input.name, true])
    for (const { hop } of seen) expect(hop).toBeUndefined()
  }
  expect(setting.gateway.counters.faults).toBe(0)
  expect((await fetch(`${setting.gateway.url}/healthz`)).status).toBe(200)
})
