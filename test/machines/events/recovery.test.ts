/** A restart: waiting calls wait, sent calls have an unknown outcome, calls with an owner continue. */
import { describe, expect, it } from 'vitest'
import { refusalOf, Story } from '../story.ts'

const running = (policy = {}): Story => {
  const story = new Story({ capacity: 3, reserve: 0, maxDeferralMs: 600_000, ...policy })
  story.auxiliary('admitted')
  story.auxiliary('dispatched')
  story.dispatch('dispatched')
  story.auxiliary('accepted')
  story.dispatch('accepted')
  story.accept('accepted')
  story.auxiliary('waiting')
  return story
}

const recovered = (policy = {}): Story => {
  const story = running(policy).restarted()
  story.tell({ type: 'host.recovered' })
  return story
}

describe('after a restart', () => {
  it('an unsent call returns to its place, a sent call is unknown and never sent again', () => {
    expect(recovered().decided).toEqual([
      'reject dispatched: outcome-unknown',
      'reject accepted: outcome-unknown',
      'defer admitted: recovered',
    ])
  })

  it('a waiting call keeps its place, and waits for its owner', () => {
    const story = recovered()
    expect(story.waiting).toEqual(['admitted', 'waiting'])
    expect(story.running).toEqual([])
  })

  it('an owner that comes back with the same id goes on from its place', () => {
    const story = recovered({ capacity: 1 })
    expect(story.auxiliary('new')).toEqual(['admit new: open'])
    story.auxiliary('waiting')
    story.auxiliary('admitted')
    expect(story.settle('new')).toEqual(['release admitted: open'])
    expect(story.settle('admitted')).toEqual(['release waiting: open'])
  })

  it.each([
    ['submits it again', (story: Story) => story.auxiliary('waiting')],
    ['claims it', (story: Story) => story.tell({ type: 'call.claimed', callId: 'waiting' })],
  ])('an owner that %s is known', (_, claim) => {
    const story = recovered()
    claim(story)
    expect(story.running).toEqual(['waiting'])
  })

  it('a call that nobody asks for expires after unclaimedExpiryMs, by name', () => {
    const story = recovered({ unclaimedExpiryMs: 60_000 })
    expect(story.pass(59_999)).toEqual([])
    expect(story.pass(1)).toEqual(['expire admitted: unclaimed', 'expire waiting: unclaimed'])
  })

  it('a call that was claimed does not expire unclaimed', () => {
    const story = recovered({ unclaimedExpiryMs: 60_000 })
    story.auxiliary('waiting')
    expect(story.pass(60_000)).toEqual(['expire admitted: unclaimed'])
    expect(story.running).toEqual(['waiting'])
  })

  it('an unknown call is answered as unknown, a settled one as settled, for as long as they are remembered', () => {
    const before = running()
    before.settle('accepted')
    const story = before.restarted()
    story.tell({ type: 'host.recovered' })
    expect(story.auxiliary('dispatched')).toEqual(['reject dispatched: outcome-unknown'])
    expect(story.auxiliary('accepted')).toEqual(['reject accepted: already-settled'])
  })

  it('dispatchAgain: what was sent returns to its place, and goes when its owner is back', () => {
    const story = recovered({ unknownAfterRestart: 'dispatchAgain' })
    expect(story.decided).toEqual([
      'defer admitted: recovered',
      'defer dispatched: recovered',
      'defer accepted: recovered',
    ])
    story.auxiliary('dispatched')
    expect(story.running).toEqual(['dispatched'])
  })

  it('the answer of a host that died changes nothing', () => {
    const story = recovered()
    story.settle('dispatched')
    expect(story.context.counters).toMatchObject({ lateSettlements: 1, unknownOutcomes: 2, completed: 0 })
  })

  it('a pending primary still closes the gate, claimed or not', () => {
    const before = new Story({ capacity: 1 })
    before.auxiliary('a')
    before.primary('p')
    const story = before.restarted()
    story.tell({ type: 'host.recovered' })
    expect(story.auxiliary('b')).toEqual(['defer b: primary-pending'])
    story.auxiliary('a')
    expect(story.running).toEqual([])
    expect(story.primary('p')).toEqual(['release p: primary'])
  })

  it('a held auxiliary is still held, and released once', () => {
    const before = new Story({ capacity: 2, reserve: 0 })
    before.primary('p')
    before.auxiliary('a')
    const story = before.restarted()
    story.tell({ type: 'host.recovered' })
    story.auxiliary('a')
    expect(story.running).toEqual([])
    story.primary('p')
    expect(story.settle('p')).toEqual(['release a: drain'])
    expect(story.settle('a')).toEqual([])
  })

  it('a primary whose outcome is unknown holds the gate no longer', () => {
    const before = new Story({ capacity: 2, reserve: 0 })
    before.primary('p')
    before.dispatch('p')
    before.auxiliary('a')
    const story = before.restarted()
    story.tell({ type: 'host.recovered' })
    expect(story.auxiliary('a')).toEqual(['release a: open'])
  })

  it('what was charged for a call that was not sent is given back', () => {
    const story = recovered({ limits: { requestsPerMinute: 10 } })
    expect(story.context.budget.requestsPerMinute?.level).toBe(8)
  })

  it('a wait of 59 minutes that the provider asked for is not forgotten', () => {
    const before = new Story()
    before.auxiliary('a')
    before.refuse('a', {
      kind: 'tokens-per-day',
      scope: 'credential',
      retryAfterMs: 3_540_000,
      retryable: true,
      facts: {},
    })
    const story = before.restarted()
    story.tell({ type: 'host.recovered' })
    expect(story.auxiliary('b')).toEqual(['defer b: provider-wait'])
    expect(story.pass(3_539_999)).not.toContain('release b: open')
    expect(story.pass(1)).toContain('release b: open')
  })

  it('twice in a row is as once', () => {
    const story = recovered().restarted()
    story.tell({ type: 'host.recovered' })
    expect(story.decided).toEqual([])
    expect(story.waiting).toEqual(['admitted', 'waiting'])
  })
})

describe('a call whose owner is not back yet', () => {
  const restarted = (before: Story): Story => {
    const story = before.restarted()
    story.tell({ type: 'host.recovered' })
    return story
  }

  it('that was promoted meanwhile passes the gate once its owner is back', () => {
    const before = new Story({ capacity: 2, reserve: 0, maxDeferralMs: 600_000 })
    before.primary('p')
    for (const id of ['a', 'b', 'c']) before.auxiliary(id)
    const story = restarted(before)
    story.primary('p')
    expect(story.tell({ type: 'call.promoted', callId: 'a' })).toEqual([])
    for (const id of ['b', 'c']) story.auxiliary(id)
    expect(story.auxiliary('a')).toEqual(['release a: dependency'])
    story.settle('p')
    story.settle('a')
    expect(story.running).toEqual(['b', 'c'])
  })

  it('makes way for later ones of its rank, and goes when its owner is back', () => {
    const before = new Story({ capacity: 1 })
    before.auxiliary('a')
    for (const id of ['p', 'q', 'r']) before.primary(id)
    const story = restarted(before)
    story.primary('q')
    expect(story.running).toEqual(['q'])
    expect(story.primary('p')).toEqual([])
    expect(story.settle('q')).toEqual(['release p: primary'])
    expect(story.context.counts).toMatchObject({ primaryReady: 0, primaryWaiting: 1 })
  })

  it('is claimed once, however often its owner asks', () => {
    const before = new Story({ capacity: 1 })
    before.auxiliary('a')
    for (const id of ['p', 'q']) before.primary(id)
    const story = restarted(before)
    for (let time = 0; time < 3; time += 1) story.primary('p')
    for (let time = 0; time < 3; time += 1) story.primary('q')
    expect(story.running).toEqual(['p'])
    expect(story.context.counts).toMatchObject({ primaryReady: 1, primaryWaiting: 1 })
  })

  it('and that waits for another still does when its owner is back', () => {
    const before = new Story({ capacity: 4, reserve: 0 })
    before.auxiliary('a')
    before.primary('p', { dependsOn: ['a'] })
    const story = restarted(before)
    expect(story.primary('p', { dependsOn: ['a'] })).toEqual([])
    expect(story.context.counts.primaryReady).toBe(0)
    expect(story.auxiliary('a')).toEqual(['release a: dependency'])
    expect(story.settle('a')).toEqual(['release p: primary'])
  })

  it('keeps its term when the host restarts again', () => {
    const before = new Story({ capacity: 1, unclaimedExpiryMs: 60_000 })
    before.auxiliary('r')
    for (const id of ['a', 'p']) before.submit({ id, lane: id === 'p' ? 'primary' : 'auxiliary' })
    const story = restarted(before)
    story.pass(40_000)
    story.withdraw('nobody')
    const again = restarted(story)
    expect(again.context.counts.primaryReady).toBe(0)
    expect(again.pass(19_999)).toEqual([])
    expect([...again.pass(1)].sort()).toEqual([
      'expire a: unclaimed',
      'expire p: unclaimed',
      'expire r: unclaimed',
    ])
  })

  it('wakes the scope when its term is over, though nothing else is due', () => {
    const before = new Story({ capacity: 1, unclaimedExpiryMs: 60_000, auxiliaryPendingTimeoutMs: 3_600_000 })
    before.auxiliary('a')
    expect(restarted(before).wakesInMs).toBe(60_000)
  })

  it('is forgotten by name in the order of coming, after those that are unknown', () => {
    const before = new Story({ capacity: 3, reserve: 0 })
    const ids = ['z', 'm', 'b', 'y', 'c', 'k']
    for (const id of ids) before.auxiliary(id)
    for (const id of ['z', 'm', 'b']) before.dispatch(id)
    const story = restarted(before)
    expect(story.decided).toEqual(['z', 'm', 'b'].map((id) => `reject ${id}: outcome-unknown`))
    expect(story.waiting).toEqual(['y', 'c', 'k'])
  })
})

describe('calls in flight that a snapshot brings back', () => {
  it('time out in the order of their grants, which need not be that of their coming', () => {
    const before = new Story({
      capacity: 2,
      reserve: 0,
      auxiliaryActiveTimeoutMs: 70_000,
      pacingBaseMs: 0,
      pacingMaxMs: 0,
    })
    for (const id of ['a', 'b']) before.auxiliary(id)
    before.pass(10_000)
    before.refuse('a')
    const story = before.restarted()
    expect(story.running).toEqual(['a', 'b'])
    expect(story.pass(60_000)).toEqual(['expire b: active-timeout'])
    expect(story.pass(10_000)).toEqual(['expire a: active-timeout'])
  })
})

describe('a policy that changes', () => {
  it('shortens what runs already: timeouts are looked at at once', () => {
    const story = new Story({ auxiliaryActiveTimeoutMs: 600_000 })
    story.auxiliary('a')
    story.pass(10_000)
    expect(story.change({ auxiliaryActiveTimeoutMs: 5_000 })).toEqual(['expire a: active-timeout'])
  })

  it('begins anew to learn the capacity', () => {
    const story = new Story({ capacity: 4, capacityFloor: 1, reserve: 0 })
    for (const id of ['a', 'b', 'c']) story.auxiliary(id)
    story.pass(5)
    story.refuse('c', refusalOf('concurrency'))
    expect(story.context.learned.places).toBe(2)
    story.change({ capacity: 6 })
    expect(story.context.learned.places).toBe(6)
  })
})
