/** A short history that goes through every state: auxiliaries, a primary that must wait, a refusal, a backlog. */
import { setTimeout as sleep } from 'node:timers/promises'
import type { EntryFrame } from '../../inspector/protocol.ts'
import { readRecord } from '../../src/host/read-record.ts'
import { type LaneHost, ManualClock, openHost, type Permit } from '../../src/index.ts'
import type { Journal } from '../../src/journal/journal.ts'

export const scope = 'anthropic/0123456789abcdef/claude-opus'
export const startMs = Date.UTC(2026, 0, 2, 3, 4, 5)

export interface Story {
  readonly host: LaneHost
  readonly clock: ManualClock
}

/** Waits until the reported events are durable and carried out. */
export const settle = () => sleep(2)

const refusal = {
  kind: 'input-tokens-per-minute',
  scope: 'model',
  retryAfterMs: 400,
  retryable: true,
  facts: { limit: 90_000, unit: 'PLANTED-UNIT' },
} as const

export const openStory = async (journal: string | Journal = ':memory:'): Promise<Story> => {
  const clock = new ManualClock(startMs)
  return { host: await openHost({ journal, clock }), clock }
}

/** The permit, as soon as what the provider stated of its limit lets it go. */
const granted = async (clock: ManualClock, asked: Promise<Permit>): Promise<Permit> => {
  let isGranted = false
  void asked.then(() => {
    isGranted = true
  })
  await settle()
  for (let step = 0; step < 60 && !isGranted; step += 1) {
    clock.advance(step < 4 ? 60 : 1_000)
    await settle()
  }
  if (!isGranted) throw new Error('a call of the story was not let go within a minute')
  return asked
}

/** Tells the story once; `round` keeps the ids of several apart. */
export const tellStory = async ({ host, clock }: Story, round = 0): Promise<void> => {
  const lanes = host.scope(scope, {
    preset: 'contract',
    capacity: 4,
    quietWindowMs: 500,
    lingerMs: 200,
    drainIntervalMs: 50,
    quantumTokens: 4_000,
  })
  const admit = (lane: 'primary' | 'auxiliary', id: string, principal: string, inputTokens: number) =>
    lanes.admit({ id: `${id}-${round}`, lane, principal, inputTokens })
  const finish = (permit: Permit, inputTokens: number) => {
    permit.accepted()
    clock.advance(7)
    permit.settle({ outcome: 'completed', usage: { inputTokens, outputTokens: 10 } })
  }
  const running = await granted(clock, admit('auxiliary', 'merge', 'memory', 1_000))
  await running.dispatched()
  clock.advance(20)
  const pending = admit('primary', 'turn', 'residence', 60_000)
  const held = [1, 2, 3, 4].map((number) => admit('auxiliary', `ingest-${number}`, 'ingestion', 1_500))
  await settle()
  clock.advance(30)
  finish(running, 1_100)
  const turn = await granted(clock, pending)
  await turn.dispatched()
  clock.advance(11)
  const again = new Promise<Permit>((resolve) => {
    turn.settle({ outcome: 'throttled', evidence: refusal })
    resolve(
      lanes.admit({ id: `turn-${round}`, lane: 'primary', principal: 'residence', inputTokens: 60_000 }),
    )
  })
  await settle()
  for (let step = 0; step < 12; step += 1) {
    clock.advance(50)
    await settle()
  }
  finish(await granted(clock, again), 61_000)
  for (const one of held) {
    finish(await granted(clock, one), 1_400)
  }
  clock.advance(300)
  await settle()
}

/** Everything that a journal holds, as frames but unprojected. */
export const entriesOf = async (journal: Pick<Journal, 'read'>): Promise<ReadonlyArray<EntryFrame>> => {
  const entries: EntryFrame[] = []
  for await (const batch of journal.read()) {
    for (const entry of batch) {
      entries.push({ scope: entry.scope, position: entry.position, ...readRecord('of this test', entry) })
    }
  }
  return entries
}
