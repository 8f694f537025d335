/** The configured policies reach every scope at the start and when they are read again, and show with their sources. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { chargesOf } from '../../src/config/charges.ts'
import { parseConfig } from '../../src/gateway/config/config.ts'
import { PolicyBook } from '../../src/gateway/config/policies.ts'
import { startGateway } from '../../src/gateway/gateway.ts'
import { kernelOf } from '../../src/host/internal.ts'
import { adaptivePolicy, openHost, type PolicyInput, parsePolicy, policyPresets } from '../../src/index.ts'

type Policies = Readonly<Record<string, PolicyInput>>
const upstreams = [
  { name: 'anthropic', provider: 'anthropic', charges: null },
  { name: 'bedrock', provider: 'aws', charges: chargesOf('bedrock') },
]

describe('a policy by its preset', () => {
  it.each(Object.entries(policyPresets))('%s', (preset, policy) => {
    expect(parsePolicy({ preset: preset as 'pool' })).toEqual(policy)
    expect(parsePolicy({ preset: preset as 'pool', capacity: 7, reserve: 1 })).toEqual({
      ...policy,
      capacity: 7,
      reserve: 1,
    })
  })

  it.each(['adaptiv', 'toString', 7, null])('named %s is refused with the names that there are', (preset) => {
    const policies = { 'anthropic/*': { preset } }
    expect(() => parseConfig({ policies })).toThrow(
      `config.policies["anthropic/*"].preset: expected one of contract, adaptive, pool, got ${JSON.stringify(preset)}`,
    )
  })
})

describe('a policy shows the source of each value', () => {
  const book = new PolicyBook(
    { 'anthropic/*': { preset: 'adaptive', capacity: 8 }, 'aws/*': { limits: { requestsPerMinute: 50 } } },
    upstreams,
  )
  const pattern = 'policies["anthropic/*"]'

  it.each([
    [
      'a pattern with a preset',
      'anthropic/k/m',
      undefined,
      'adaptive',
      { capacity: { value: 8, from: pattern } },
    ],
    [
      'an upstream that says how it charges',
      'aws/k/m',
      undefined,
      'adaptive',
      {
        limits: { value: expect.objectContaining({ requestsPerMinute: 50 }), from: 'policies["aws/*"]' },
        charges: { value: chargesOf('bedrock'), from: 'upstreams["bedrock"].charges' },
      },
    ],
    [
      'an operator who changed it',
      'anthropic/k/m',
      { ...adaptivePolicy, capacity: 8, patienceMs: 1 },
      'adaptive',
      {
        capacity: { value: 8, from: pattern },
        patienceMs: { value: 1, from: 'changed while it runs' },
      },
    ],
    ['nothing', 'openai/k/m', undefined, 'adaptive', {}],
  ] as const)('of %s', (_, scope, inForce, preset, values) => {
    const shown = book.shown(scope, inForce)
    expect(shown).toMatchObject({ preset })
    expect(shown.values).toEqual(values)
  })
})

it.each([
  ['anthropic/*', true],
  ['anthropic/k/claude*', true],
  ['*', true],
  ['*/claude-opus', true],
  ['a*', true],
  ['aws/*', true],
  ['anthropc/*', false],
  ['anthropic', false],
  ['bedrock/*', false],
  ['Anthropic/*', false],
])('of the pattern %s it is known that it can fit: %s', (pattern, fits) => {
  expect(new PolicyBook({ [pattern]: {} }, upstreams).warnings).toEqual(
    fits ? [] : [`policies["${pattern}"] fits no scope: the names of scopes begin with anthropic/, aws/`],
  )
})

const started = async (journal: string, policies: Policies) => {
  const host = await openHost({ journal })
  const config = parseConfig({ port: 0, policies })
  const gateway = await startGateway({ host, config, secret: 'test' })
  let isOpen = true
  const stop = async () => {
    if (!isOpen) return
    isOpen = false
    const closed = host.close()
    await gateway.close()
    await closed
  }
  onTestFinished(stop)
  const lanes = async () =>
    (await (await fetch(`${gateway.url}/lanes`)).json()) as {
      readonly scopes: ReadonlyArray<{ readonly scope: string; readonly policy: unknown }>
    }
  return { host, gateway, stop, lanes }
}

const waiting = (host: Awaited<ReturnType<typeof openHost>>, policy: PolicyInput) => {
  const scope = host.scope('anthropic/k/m', policy)
  const forever = () => new Promise<void>(() => {})
  scope.run({ id: 'first', lane: 'auxiliary' }, forever).catch(() => {})
  scope.run({ id: 'second', lane: 'auxiliary' }, forever).catch(() => {})
  return scope
}

const policyOf = (host: Awaited<ReturnType<typeof openHost>>) =>
  kernelOf(host).runners.get('anthropic/k/m')?.context.policy

it('a policy that was removed no longer counts after a start, and a changed one counts before any call', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'rightofway-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  const journal = join(folder, 'lanes.db')
  const one = { 'anthropic/*': { capacity: 1, reserve: 0 } } satisfies Policies
  const first = await started(journal, one)
  waiting(first.host, one['anthropic/*'])
  await vi.waitFor(() => expect(first.host.status()[0]?.auxiliary).toMatchObject({ inFlight: 1, waiting: 1 }))
  await first.stop()
  const second = await started(journal, { 'anthropic/*': { capacity: 3, reserve: 0 } })
  expect(policyOf(second.host)?.capacity).toBe(3)
  expect((await second.lanes()).scopes).toMatchObject([
    {
      scope: 'anthropic/k/m',
      policy: {
        preset: 'adaptive',
        pattern: 'anthropic/*',
        values: { capacity: { value: 3, from: 'policies["anthropic/*"]' } },
      },
    },
  ])
  await second.stop()
  const third = await started(journal, {})
  expect(policyOf(third.host)).toEqual(parsePolicy())
  expect((await third.lanes()).scopes).toMatchObject([{ policy: { pattern: null, values: {} } }])
})

it('policies that are read again release calls that wait; scopes of no upstream keep their own', async () => {
  const { host, gateway } = await started(':memory:', {})
  const pool = host.scope('pool', { capacity: 2, reserve: 0 })
  const scope = waiting(host, { capacity: 1, reserve: 0 })
  await vi.waitFor(() => expect(scope.status.auxiliary.waiting).toBe(1))
  gateway.usePolicies({ 'anthropic/*': { capacity: 2, reserve: 0 } })
  await vi.waitFor(() => expect(scope.status.auxiliary).toMatchObject({ inFlight: 2, waiting: 0 }))
  expect(scope.status.policy).toEqual({ capacity: 2, capacityFloor: 2 })
  expect(pool.status.capacity).toBe(2)
  gateway.usePolicies({})
  expect(scope.status.policy).toEqual({})
})
