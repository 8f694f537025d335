/** The run that is killed everywhere: a call that ends, one that holds a primary up, a refusal, and a backlog that drains. */
import type { Permit } from '../../src/host/permit.ts'

export interface ScriptedCall {
  readonly id: string
  readonly lane: 'primary' | 'auxiliary'
  readonly inputTokens: number
}

const auxiliary = (id: string): ScriptedCall => ({ id, lane: 'auxiliary', inputTokens: 1_000 })

export const scriptedCalls: ReadonlyArray<ScriptedCall> = [
  auxiliary('first'),
  auxiliary('under-way'),
  { id: 'turn', lane: 'primary', inputTokens: 2_000 },
  auxiliary('held'),
]

export const scriptedPolicy = {
  preset: 'contract',
  capacity: 2,
  pacingBaseMs: 1,
  pacingMaxMs: 1,
  drainIntervalMs: 0,
} as const

export const script = async (run: (call: ScriptedCall) => Promise<unknown>): Promise<void> => {
  const [first, underWay, turn, held] = scriptedCalls
  await run(first!)
  await Promise.all([underWay, turn, held].map((call) => run(call!)))
}

/** The error that the provider's SDK throws for a refusal. */
class Refused extends Error {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly error: unknown
  constructor(status: number, headers: Readonly<Record<string, string>>, error: unknown) {
    super(`${status}`)
    this.status = status
    this.headers = headers
    this.error = error
  }
}

/** One dispatch over HTTP. The primary's first one is refused by an overloaded provider. */
export const send = async (provider: string, permit: Permit): Promise<unknown> => {
  const refuses = permit.callId.endsWith('-turn') && permit.attempt === 1
  const response = await fetch(`${provider}/v1/messages`, {
    method: 'POST',
    signal: permit.signal,
    headers: {
      'content-type': 'application/json',
      'x-api-key': 'k',
      'x-emulator-call-id': permit.callId,
      'x-emulator-output-tokens': '1',
      ...(refuses ? { 'x-emulator-fault': 'overloaded' } : {}),
    },
    body: JSON.stringify({ model: 'm', max_tokens: 8, messages: [{ role: 'user', content: 'hello' }] }),
  })
  if (response.ok) {
    permit.accepted()
    return response.json()
  }
  throw new Refused(response.status, Object.fromEntries(response.headers), await response.json())
}
