/** After a spend cap: the callers that met it hear so at once, the scope is held with a name, and one call asks whether it is over. */
import { describe, expect, it } from 'vitest'
import { contractPolicy, type PolicyInput } from '../../../machines/index.ts'
import { refusalOf, Story } from '../story.ts'

const cap = refusalOf('quota-exhausted', { scope: 'credential', retryable: false })
const { quotaHoldMs } = contractPolicy

/** One call has met the cap; three more and a primary have come since. */
const capped = (policy: PolicyInput = {}): Story => {
  const story = new Story({ capacity: 8, reserve: 0, ...policy })
  story.auxiliary('met')
  expect(story.refuse('met', cap)).toEqual(['reject met: not-retryable'])
  for (const id of ['a', 'b', 'c']) expect(story.auxiliary(id)).toEqual([`defer ${id}: provider-wait`])
  return story
}

describe('a scope after a spend cap', () => {
  it('holds new calls with a named reason, and sends one after quotaHoldMs', () => {
    const story = capped()
    expect(story.context.wait).toEqual({
      untilMs: story.at + quotaHoldMs,
      kind: 'quota-exhausted',
      reach: 'credential',
      probeId: null,
    })
    expect(story.pass(quotaHoldMs - 1)).toEqual([])
    expect(story.pass(1)).toEqual(['release a: probe'])
    expect(story.reasonOf('b')).toBe('provider-wait')
    expect(story.auxiliary('d')).toEqual(['defer d: provider-wait'])
  })

  it('lets a primary ask first, where no auxiliary is overdue', () => {
    const story = capped({ maxDeferralMs: 2 * quotaHoldMs })
    expect(story.primary('p')).toEqual(['defer p: provider-wait'])
    expect(story.pass(quotaHoldMs)).toEqual(['release p: probe'])
    expect(story.running).toEqual(['p'])
  })

  it('goes on as before when the provider takes that one', () => {
    const story = capped()
    story.pass(quotaHoldMs)
    expect(story.accept('a')).toEqual(['release b: open', 'release c: open'])
    expect(story.context.wait).toBe(null)
  })

  it('is held for as long again when the cap is still there', () => {
    const story = capped()
    story.pass(quotaHoldMs)
    story.pass(10)
    expect(story.refuse('a', cap)).toEqual(['reject a: not-retryable'])
    expect(story.pass(quotaHoldMs - 1)).toEqual([])
    expect(story.pass(1)).toEqual(['release b: probe'])
  })

  it.each([
    ['fails', (story: Story) => story.settle('a', 'failed')],
    ['is withdrawn before it was sent', (story: Story) => story.withdraw('a')],
  ])('sends another when that one %s without an answer', (_, end) => {
    const story = capped()
    story.pass(quotaHoldMs)
    expect(end(story)).toEqual(['release b: probe'])
    expect(story.running).toEqual(['b'])
  })

  it('sends one more when that one is never answered', () => {
    const story = capped()
    story.pass(quotaHoldMs)
    expect(story.pass(quotaHoldMs)).toEqual(['release b: probe'])
  })

  it('sends one call, not all, when an operator releases it', () => {
    const story = capped()
    expect(story.tell({ type: 'wait.released' })).toEqual(['release a: probe'])
    expect(story.accept('a')).toEqual(['release b: open', 'release c: open'])
  })

  it('asks with a call that a primary needs, which keeps the reason that lets it past the gate', () => {
    const story = capped()
    story.primary('p', { dependsOn: ['a'] })
    expect(story.pass(quotaHoldMs)).toEqual(['release a: dependency'])
    expect(story.context.wait?.probeId).toBe('a')
  })

  it('takes an acceptance of a call from before the cap for what it is: late', () => {
    const story = new Story({ capacity: 8, reserve: 0 })
    for (const id of ['early', 'met']) story.auxiliary(id)
    story.refuse('met', cap)
    story.accept('early')
    expect(story.auxiliary('a')).toEqual(['defer a: provider-wait'])
  })

  it('asks again after a restart, with one call', () => {
    const before = capped()
    before.pass(quotaHoldMs)
    before.dispatch('a')
    const story = before.restarted()
    story.tell({ type: 'host.recovered' })
    for (const callId of ['b', 'c']) story.tell({ type: 'call.claimed', callId })
    expect(story.running).toHaveLength(1)
  })

  it('is not held by what concerns one request only', () => {
    const story = new Story({ capacity: 8, reserve: 0 })
    story.auxiliary('met')
    story.refuse('met', refusalOf('not-capacity', { scope: 'model', retryable: false }))
    expect(story.auxiliary('a')).toEqual(['admit a: open'])
  })
})
