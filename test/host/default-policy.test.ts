/** The policy of a scope that names none, and what scopes of earlier versions keep. */
import { expect, it, onTestFinished } from 'vitest'
import { parseConfig } from '../../src/gateway/config/config.ts'
import { startGateway } from '../../src/gateway/gateway.ts'
import { kernelOf } from '../../src/host/internal.ts'
import { adaptivePolicy, contractPolicy, defaultPolicy, ManualClock, openHost } from '../../src/index.ts'
import { type MemoryJournal, openMemoryJournal } from '../../src/journal/memory.ts'
import { settle } from './bench.ts'

const key = { provider: 'anthropic', credential: 'k', model: 'm' } as const
const name = 'anthropic/k/m'

const opened = async (journal: MemoryJournal | ':memory:' = ':memory:') => {
  const host = await openHost({ journal, clock: new ManualClock(1_000_000) })
  onTestFinished(() => host.close())
  return host
}
type Host = Awaited<ReturnType<typeof opened>>
const policyOf = (host: Host, scope = name) => kernelOf(host).runners.get(scope)?.context.policy
const used = async (host: Host, policy = {}) => {
  await host.scope(key, policy).run({ lane: 'auxiliary', inputTokens: 10 }, async () => 'done')
  await settle()
}

it('is the adaptive preset, whose table the documentation shows', async () => {
  expect(defaultPolicy).toBe(adaptivePolicy)
  const host = await opened()
  expect(host.scope(key).status.policy).toEqual({})
  expect(policyOf(host)).toEqual(adaptivePolicy)
})

it('gives the fields that a policy leaves out; a smaller capacity lowers the floor of its learning', async () => {
  const host = await opened()
  host.scope(key, { capacity: 2 })
  expect(policyOf(host)).toEqual({ ...adaptivePolicy, capacity: 2, capacityFloor: 2 })
})

it('is written down, so that another default of a later version changes no scope', async () => {
  const journal = openMemoryJournal()
  const first = await opened(journal)
  const events: unknown[] = []
  kernelOf(first).observe(({ event }) => events.push(event))
  await used(first)
  expect(events[0]).toMatchObject({ type: 'policy.changed', policy: { preset: 'adaptive' } })
  const next = await opened(openMemoryJournal({ history: journal.survivors() }))
  expect(policyOf(next)).toEqual(adaptivePolicy)
})

/** A journal as earlier versions wrote it: their scopes began with the contract, and wrote nothing of it. */
const olderJournal = async (policy = {}): Promise<MemoryJournal> => {
  const journal = openMemoryJournal()
  await used(await opened(journal), { preset: 'contract', ...policy })
  return openMemoryJournal({ history: journal.survivors() })
}

it('leaves scopes of existing journals under the contract, also when they state a few fields', async () => {
  const host = await opened(await olderJournal())
  host.scope(key)
  expect(policyOf(host)).toEqual(contractPolicy)
  host.scope(key, { capacity: 8 })
  expect(policyOf(host)).toEqual({ ...contractPolicy, capacity: 8 })
  expect(host.scope(key).status.policy).toEqual({ preset: 'contract', capacity: 8 })
  host.scope(key, { preset: 'adaptive' })
  expect(policyOf(host)).toEqual(adaptivePolicy)
})

it('is that of a gateway too: new scopes are adaptive, those of its journal keep the contract', async () => {
  const host = await opened(await olderJournal({ capacity: 5 }))
  const config = parseConfig({ port: 0, policies: { 'anthropic/k/*': { patienceMs: 7 } } })
  const gateway = await startGateway({ host, config, secret: 'test' })
  onTestFinished(() => gateway.close())
  expect(policyOf(host)).toEqual({ ...contractPolicy, patienceMs: 7 })
  host.scope({ ...key, credential: 'other' })
  expect(policyOf(host, 'anthropic/other/m')).toEqual(adaptivePolicy)
  gateway.usePolicies({ 'anthropic/*': { capacity: 9 } })
  expect(policyOf(host)).toEqual({ ...contractPolicy, capacity: 9 })
  expect(policyOf(host, 'anthropic/other/m')).toEqual({ ...adaptivePolicy, capacity: 9 })
  gateway.usePolicies({ 'anthropic/k/*': { preset: 'adaptive' } })
  expect(policyOf(host)).toEqual(adaptivePolicy)
})
