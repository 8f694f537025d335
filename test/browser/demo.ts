/**
 * Traffic worth looking at: a real host before the emulator, two scopes, a large conversation call
 * now and then, and background calls of several principals that keep coming.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { type Emulator, startEmulator } from '../../src/emulator/index.ts'
import {
  fingerprint,
  type LaneHost,
  type LaneScope,
  openHost,
  type Permit,
  type PolicyInput,
} from '../../src/index.ts'

export interface Demo {
  readonly host: LaneHost
  readonly emulator: Emulator
  /** Ids of primaries, in order of submission. */
  readonly primaries: ReadonlyArray<string>
  readonly stop: () => Promise<void>
}

/** These texts must not appear in any frame: the contents of calls, their answers, and their keys. */
export const planted = ['sk-ant-PLANTED-KEY-0001', 'PLANTED-PROMPT-quokka', 'PLANTED-HEADER-value'] as const

const principals = ['compression', 'memory-merge', 'ingestion'] as const

interface Ask {
  readonly id: string
  readonly inputTokens: number
  readonly outputTokens: number
  /** Its caller cannot use the answer. */
  readonly fails?: true
}

const dispatch = async (url: string, ask: Ask, permit: Permit): Promise<unknown> => {
  const response = await fetch(`${url}/v1/messages`, {
    method: 'POST',
    signal: permit.signal,
    headers: {
      'content-type': 'application/json',
      'x-api-key': planted[0],
      'x-planted': planted[2],
      'x-emulator-input-tokens': String(ask.inputTokens),
      'x-emulator-output-tokens': String(ask.outputTokens),
    },
    body: JSON.stringify({
      model: 'emulator-large',
      max_tokens: 4_096,
      stream: true,
      messages: [{ role: 'user', content: `${planted[1]} ${ask.id}` }],
    }),
  })
  if (response.ok) {
    permit.accepted()
    await response.text()
    if (ask.fails === true) throw new Error('the answer is of no use')
    return { usage: { input_tokens: ask.inputTokens, output_tokens: ask.outputTokens } }
  }
  throw Object.assign(new Error(`status ${response.status}`), {
    status: response.status,
    headers: response.headers,
    error: (await response.json()) as unknown,
  })
}

interface Who {
  readonly scope: LaneScope
  readonly lane: 'primary' | 'auxiliary'
  readonly principal: string
}

const call = ({ scope, lane, principal }: Who, url: string, ask: Ask): Promise<unknown> => {
  const { id, inputTokens, outputTokens } = ask
  return (
    scope
      .run({ id, lane, principal, inputTokens, outputTokens }, (permit) => dispatch(url, ask, permit))
      // Refused for good, or the demo ends: the journal tells which.
      .catch(() => {})
  )
}

export const startDemo = async ({ journal = ':memory:', pace = 1 } = {}): Promise<Demo> => {
  const emulator = await startEmulator({
    rules: [{ rule: 'token-bucket', inputTokensPerMinute: 3_000_000, burstInputTokens: 240_000 }],
    latency: { firstTokenMs: 120, perOutputTokenMs: 2 },
  })
  const host = await openHost({ journal })
  const credential = fingerprint(planted[0])
  const policy: PolicyInput = {
    // Each state of the contract is worth a look.
    preset: 'contract',
    capacity: 6,
    quietWindowMs: 1_500,
    lingerMs: 700,
    drainIntervalMs: 250,
    quantumTokens: 12_000,
    patienceMs: 900,
  }
  const large = host.scope({ provider: 'anthropic', credential, model: 'claude-opus' }, policy)
  const small = host.scope(
    { provider: 'anthropic', credential, model: 'claude-haiku' },
    { ...policy, capacity: 3 },
  )
  const primaries: string[] = []
  let running = true
  let number = 0
  const background = async (scope: LaneScope, principal: string, everyMs: number) => {
    while (running) {
      number += 1
      const id = `${principal}-${String(number).padStart(4, '0')}`
      const size = 900 + ((number * 7919) % 5_000)
      const ask = { id, inputTokens: size, outputTokens: 60 + (number % 120) }
      const who = { scope, lane: 'auxiliary', principal } as const
      void call(who, emulator.url, number % 23 === 0 ? { ...ask, fails: true } : ask)
      await sleep(everyMs * pace * (0.6 + ((number * 31) % 80) / 100))
    }
  }
  const conversation = async () => {
    for (let turn = 1; running; turn += 1) {
      await sleep(1_100 * pace)
      const id = `turn-${turn}`
      primaries.push(id)
      const ask = { id, inputTokens: 40_000 + (turn % 5) * 32_000, outputTokens: 420 }
      await call({ scope: large, lane: 'primary', principal: 'residence-7' }, emulator.url, ask)
    }
  }
  for (const [index, principal] of principals.entries()) void background(large, principal, 620 + 180 * index)
  void background(small, 'titles', 420)
  void conversation()
  return {
    host,
    emulator,
    primaries,
    stop: async () => {
      running = false
      await host.close()
      await emulator.close()
    },
  }
}
