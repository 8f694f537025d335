/** The log of `serve`: a line for each refusal, hold, release and error, without secrets. */
import { describe, expect, it } from 'vitest'
import type { ScopeEvent } from '../../machines/index.ts'
import { type LogLine, linesOf, ServeLog } from '../../src/cli/serve-log.ts'
import type { Decision, Evidence, Observation } from '../../src/index.ts'

const at = Date.UTC(2026, 0, 2)
const evidence: Evidence = {
  kind: 'overloaded',
  scope: 'model',
  retryAfterMs: 500,
  retryable: true,
  facts: {},
}
const wait = { untilMs: at + 60_000, kind: 'rate-limit', probeId: null } as never
const decision = (verdict: Decision['verdict'], reason: string): Decision =>
  ({ callId: 'c', verdict, reason, at, state: 'idle' }) as Decision
const observed = (event: Partial<ScopeEvent>, decisions: ReadonlyArray<Decision> = []): Observation => ({
  ...{ scope: 's', position: 1, episode: null, decisions },
  event: { at, ...event } as ScopeEvent,
})
const said = (lines: ReadonlyArray<LogLine>) => lines.map(({ level, event }) => `${level} ${event}`)
const settled = { type: 'call.settled', callId: 'c', outcome: 'throttled', evidence } as const

describe('of an event', () => {
  it.each<[string, Observation, ReadonlyArray<string>]>([
    ['a refusal of the provider', observed(settled), ['info refused by the provider']],
    ['a failure', observed({ ...settled, evidence: undefined, outcome: 'failed' } as never), ['warn failed']],
    ['a success', observed({ ...settled, evidence: undefined, outcome: 'completed' } as never), []],
    ['a refusal of the lanes', observed({}, [decision('reject', 'fair-share')]), ['info refused']],
    ['a call that waited too long', observed({}, [decision('expire', 'pending-timeout')]), ['warn expired']],
    ['a preemption', observed({}, [decision('cancel', 'primary-pending')]), ['info preempted']],
    ['a release from the queue', observed({}, [decision('release', 'drain')]), ['info released']],
    ['an operator who ends a hold', observed({ type: 'wait.released' }), ['info hold released']],
    [
      'what is of no interest',
      observed({ type: 'clock.woke' }, [decision('defer', 'budget')]),
      ['debug deferred'],
    ],
  ])('it says %s', (_, observation, expected) => {
    expect(said(linesOf(observation, null, null))).toEqual(expected)
  })

  it('it says a hold once, and again when it grows', () => {
    const shorter = { untilMs: at + 1_000, kind: 'rate-limit', probeId: null } as never
    expect(said(linesOf(observed(settled), wait, null))).toEqual([
      'info refused by the provider',
      'warn held',
    ])
    expect(said(linesOf(observed({ type: 'clock.woke' }), wait, wait))).toEqual([])
    expect(said(linesOf(observed({ type: 'clock.woke' }), wait, shorter))).toEqual(['warn held'])
  })
})

const logged = (options: { readonly level?: 'info' | 'error'; readonly json?: boolean }, line: LogLine) => {
  const lines: string[] = []
  const { level = 'info', json = false } = options
  new ServeLog({ level, json, write: (text) => lines.push(text), now: () => at }).log(line)
  return lines
}

describe('a line', () => {
  const line: LogLine = {
    level: 'info',
    event: 'held',
    fields: { scope: 'a/b/c', kind: null, text: 'two words' },
  }

  it('is text or JSON', () => {
    expect(logged({}, line)).toEqual([
      '2026-01-02T00:00:00.000Z info held scope=a/b/c kind=null text="two words"',
    ])
    expect(logged({ json: true }, line).map((text) => JSON.parse(text))).toEqual([
      {
        at: '2026-01-02T00:00:00.000Z',
        level: 'info',
        event: 'held',
        scope: 'a/b/c',
        kind: null,
        text: 'two words',
      },
    ])
  })

  it('below the level is left out', () => {
    expect(logged({ level: 'error' }, line)).toEqual([])
    expect(logged({ level: 'error' }, { ...line, level: 'error' })).toHaveLength(1)
  })

  it.each([
    'sk-ant-api03-abcdefghijklmnop',
    'sk-proj-abcdefghijkl_mnop',
    'AIzaSyA1234567890abcdefgh',
    'AKIAIOSFODNN7EXAMPLE',
    'Bearer abc.def.ghi',
    'http://person:password@host/path',
  ])('never shows a secret such as %s', (secret) => {
    for (const json of [false, true]) {
      const [text] = logged({ json }, { ...line, fields: { problem: `before ${secret} after` } })
      expect(text).toContain('[redacted]')
      expect(text).not.toContain(secret.split(/[ @/]/).at(-1) === 'path' ? 'password' : secret.slice(-10))
    }
  })

  it('stays one line, whatever it quotes', () => {
    const [text] = logged({}, { ...line, fields: { problem: 'a\nb\u0007"c"' } })
    expect(text).toMatch(/^[\x20-\x7e]+$/)
  })
})
