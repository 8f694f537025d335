/** `providerScope` as an actor among others: held against the same chart run by XState's own interpreter. */
import { describe, expect, it } from 'vitest'
import {
  type ActorRefFrom,
  assign,
  createActor,
  createMachine,
  getMicrosteps,
  getNextSnapshot,
  type InspectionEvent,
  initialTransition,
  sendTo,
  setup,
  transition,
} from 'xstate'
import {
  contextFrom,
  InvalidInput,
  InvariantBroken,
  providerScope,
  type ScopeEmitted,
  type ScopeEvent,
  scopeChart,
} from '../../../machines/index.ts'
import { blankCall, refusalOf } from '../story.ts'

const input = { scope: 'test', policy: { capacity: 1, lingerMs: 1_000 } } as const
const primary = { lane: 'primary', priorityClass: 'interactive' } as const
const submitted = (id: string, at: number, over: object = {}): ScopeEvent => ({
  type: 'call.submitted',
  at,
  call: { ...blankCall, id, ...over },
})

/** Through all five states and back, with every kind of arrow taken. */
const story: ReadonlyArray<ScopeEvent> = [
  submitted('a', 1_000),
  submitted('b', 1_001),
  submitted('p', 1_002, primary),
  { type: 'call.settled', at: 1_003, callId: 'a', outcome: 'completed' },
  { type: 'call.settled', at: 1_004, callId: 'p', outcome: 'throttled', evidence: refusalOf('acceleration') },
  { type: 'clock.woke', at: 61_004 },
  { type: 'call.accepted', at: 61_005, callId: 'p' },
  { type: 'call.settled', at: 61_006, callId: 'p', outcome: 'completed' },
  { type: 'call.settled', at: 61_007, callId: 'b', outcome: 'completed' },
  { type: 'clock.woke', at: 70_000 },
]

describe('provide', () => {
  it('of nothing gives the same actor: it decides, and persists in the same shape', () => {
    const [plain, provided] = [
      providerScope,
      providerScope.provide({}).provide({ actions: {}, guards: {} }),
    ].map((logic) => {
      const emitted: ScopeEmitted[] = []
      const actor = createActor(logic, { input })
      actor.on('decided', (event) => emitted.push(event))
      actor.start()
      for (const event of story) actor.send(event)
      return { emitted, persisted: JSON.stringify(actor.getPersistedSnapshot()) }
    })
    expect(provided).toEqual(plain)
    expect(plain!.emitted).toHaveLength(7)
  })

  it.each(['actions', 'guards', 'actors', 'delays'] as const)('of %s is refused by name', (kind) => {
    expect(() => providerScope.provide({ [kind]: { mine: () => true } })).toThrow(
      `providerScope has no ${kind} to provide, got mine`,
    )
  })

  it('to the machine that invokes it puts another actor in its place, as of any actor', () => {
    const host = setup({ actors: { lanes: providerScope } }).createMachine({
      invoke: { id: 'lanes', src: 'lanes', input },
    })
    const actor = createActor(host.provide({ actors: { lanes: providerScope.provide({}) } })).start()
    actor.getSnapshot().children['lanes']!.send(story[0]!)
    expect(actor.getSnapshot().children['lanes']!.getSnapshot().context.scope.counts.places).toBe(1)
  })
})

type LanesRef = ActorRefFrom<typeof providerScope>

/** Machines that hold a scope, by the three ways in which XState has actors. */
const holders = {
  'spawned inline': createMachine({
    context: ({ spawn }) => ({ lanes: spawn(providerScope, { id: 'lanes', input }) }),
    on: { '*': { actions: sendTo('lanes', ({ event }) => event) } },
  }),
  'spawned by its name': setup({ actors: { providerScope } }).createMachine({
    context: ({ spawn }) => ({ lanes: spawn('providerScope', { id: 'lanes', input }) }),
    on: { '*': { actions: sendTo('lanes', ({ event }) => event as ScopeEvent) } },
  }),
  'spawned later': setup({
    types: { context: {} as { lanes: LanesRef | null } },
    actors: { providerScope },
  }).createMachine({
    context: { lanes: null },
    on: {
      begin: { actions: assign({ lanes: ({ spawn }) => spawn('providerScope', { id: 'lanes', input }) }) },
      '*': { actions: sendTo('lanes', ({ event }) => event as ScopeEvent) },
    },
  }),
  'invoked inline': createMachine({
    invoke: { id: 'lanes', src: providerScope, input },
    on: { '*': { actions: sendTo('lanes', ({ event }) => event) } },
  }),
  'invoked by its name': setup({ actors: { providerScope } }).createMachine({
    invoke: { id: 'lanes', src: 'providerScope', input },
    on: { '*': { actions: sendTo('lanes', ({ event }) => event as ScopeEvent) } },
  }),
} as const

describe('a machine that holds a scope', () => {
  const alone = createActor(providerScope, { input }).start()
  for (const event of story.slice(0, 6)) alone.send(event)
  const middle = JSON.stringify(alone.getPersistedSnapshot())
  for (const event of story.slice(6)) alone.send(event)
  const end = JSON.stringify(alone.getPersistedSnapshot())

  it.each(Object.entries(holders))('%s goes on after it was persisted, twice', (how, machine) => {
    const begun = createActor(machine as (typeof holders)['spawned later']).start()
    begun.send({ type: 'begin' } as never)
    for (const event of story.slice(0, 6)) begun.send(event as never)
    // XState persists an actor without a name only where it is told to.
    const options = { __unsafeAllowInlineActors: true }
    const isInline = how.endsWith('inline')
    const persist = (actor: typeof begun) =>
      (actor.getPersistedSnapshot as (options?: object) => object)(isInline ? options : undefined)
    const first = persist(begun) as { readonly children: Record<string, { readonly snapshot: object }> }
    expect(JSON.stringify(first.children['lanes']!.snapshot)).toBe(middle)
    // Its code does not survive JSON: a holder in line keeps the object that it got.
    const saved = isInline ? first : JSON.parse(JSON.stringify(first))

    const restored = createActor(machine as (typeof holders)['spawned later'], { snapshot: saved }).start()
    const second = persist(restored) as typeof first
    expect(JSON.stringify(second)).toBe(JSON.stringify(first))
    const again = createActor(machine as (typeof holders)['spawned later'], {
      snapshot: isInline ? (second as never) : JSON.parse(JSON.stringify(second)),
    }).start()
    const emitted: string[] = []
    again.getSnapshot().children['lanes']!.on('*', ({ type }) => emitted.push(type))
    for (const event of story.slice(6)) again.send(event as never)
    expect(JSON.stringify((persist(again) as typeof first).children['lanes']!.snapshot)).toBe(end)
    expect(emitted.length).toBeGreaterThan(0)
  })

  it('hears of a broken invariant as of any failed actor', () => {
    const host = setup({ actors: { providerScope } }).createMachine({
      initial: 'on',
      states: {
        on: { invoke: { id: 'lanes', src: 'providerScope', input, onError: 'failed' } },
        failed: {},
      },
    })
    const actor = createActor(host).start()
    const lanes = actor.getSnapshot().children['lanes'] as LanesRef
    Object.assign(lanes.getSnapshot().context.scope.counts, { places: -1 })
    lanes.send({ type: 'clock.woke', at: 1 })
    expect(actor.getSnapshot().value).toBe('failed')
    expect(lanes.getSnapshot().error).toBeInstanceOf(InvariantBroken)
  })
})

describe('its snapshot', () => {
  it('of a stopped actor goes on, for its scope has not ended', () => {
    const actor = createActor(providerScope, { input }).start()
    actor.send(story[0]!)
    actor.stop()
    expect(actor.getSnapshot().status).toBe('stopped')
    const restored = createActor(providerScope, {
      input,
      snapshot: JSON.parse(JSON.stringify(actor.getPersistedSnapshot())),
    }).start()
    restored.send(story[1]!)
    expect(restored.getSnapshot().context.scope.counts).toMatchObject({ places: 1, auxiliaryWaiting: 1 })
  })

  it('of a failed actor is that of a failed actor', () => {
    const actor = createActor(providerScope, { input })
    actor.subscribe({ error: () => {} })
    actor.start()
    Object.assign(actor.getSnapshot().context.scope.counts, { places: -1 })
    actor.send(story[0]!)
    const restored = createActor(providerScope, { input, snapshot: actor.getPersistedSnapshot() })
    expect(restored.getSnapshot()).toMatchObject({ status: 'error', error: { invariant: 'I2' } })
  })

  it('is taken as it is from a running actor, as XState\u2019s machines do', () => {
    const actor = createActor(providerScope, { input }).start()
    actor.send(story[0]!)
    const other = createActor(providerScope, { input, snapshot: actor.getSnapshot() }).start()
    expect(other.getSnapshot().context.scope).toBe(actor.getSnapshot().context.scope)
  })

  it.each([7, 'text', true])('that is %s is refused', (snapshot) => {
    const { status, error } = createActor(providerScope, { input, snapshot: snapshot as never }).getSnapshot()
    expect([status, String(error)]).toEqual(['error', expect.stringContaining('snapshot is unreadable')])
  })
})

describe('XState\u2019s pure functions', () => {
  it('transition lists what is emitted as it does for the chart, and comes to the same', () => {
    const [logic, chart] = [providerScope, scopeChart].map((of) => {
      let [snapshot] = initialTransition(of as typeof scopeChart, input)
      return story.map((event) => {
        const [next, actions] = transition(of as typeof scopeChart, snapshot, event as never)
        snapshot = next as typeof snapshot
        const emitted = (actions as ReadonlyArray<{ type: string; params: unknown }>)
          .filter(({ type }) => type === 'xstate.emit')
          .map(({ params }) => params)
        return { value: next.value, emitted }
      })
    })
    expect(logic).toEqual(chart)
    expect(logic!.flatMap(({ emitted }) => emitted)).toHaveLength(7)
    expect(logic![0]!.emitted).toMatchObject([
      { event: { type: 'decided', decisions: [{ verdict: 'admit', callId: 'a' }] } },
    ])
  })

  it('transition executes nothing, and its actions emit when they are executed', () => {
    const actor = createActor(providerScope, { input }).start()
    const before = actor.getSnapshot()
    const [next] = transition(providerScope, before, story[0]!)
    expect(actor.getSnapshot()).toBe(before)
    expect(next.context.scope.counts.places).toBe(1)
    expect(before.context.scope.counts.places).toBe(0)
  })

  it('getNextSnapshot has the decisions in its context', () => {
    const [first] = initialTransition(providerScope, input)
    const { decisions } = getNextSnapshot(providerScope, first, story[0]!).context.scope
    expect(decisions).toMatchObject([{ verdict: 'admit', callId: 'a' }])
  })

  it('getMicrosteps takes the chart', () => {
    const [first] = initialTransition(scopeChart, input)
    const steps = getMicrosteps(scopeChart, first, submitted('p', 1, primary))
    expect(steps.map(([{ value }]) => value)).toEqual([
      'idle',
      'primaryPending',
      { quietRamp: 'quiet' },
      { quietRamp: 'admitting' },
      { quietRamp: 'admitting' },
    ])
  })
})

describe('an inspector', () => {
  /** The messages to the inspector, without the names that differ between two actors. */
  const shownBy = (logic: typeof providerScope | typeof scopeChart) => {
    const shown: unknown[] = []
    const inspect = (message: InspectionEvent & { readonly _transitions?: ReadonlyArray<object> }) => {
      const { type, event, snapshot, action, _transitions } = message as never as Record<string, never>
      shown.push({
        type,
        event,
        action,
        value: (snapshot as { value?: unknown } | undefined)?.value,
        decisions: (snapshot as { context?: { scope: { decisions: unknown } } } | undefined)?.context?.scope
          .decisions,
        transitions: (_transitions as ReadonlyArray<object> | undefined)?.map((one) => JSON.stringify(one)),
      })
    }
    const actor = createActor(logic as typeof providerScope, { input, inspect }).start()
    for (const event of story) actor.send(event)
    return shown
  }

  it('is shown every message that XState\u2019s interpreter sends for the chart, guards and actions included', () => {
    const shown = shownBy(providerScope)
    expect(shown).toEqual(shownBy(scopeChart))
    const text = JSON.stringify(shown)
    expect(
      shown.filter((one) => (one as { type: string }).type === '@xstate.microstep').length,
    ).toBeGreaterThan(25)
    for (const guard of ['primaryWanted', 'auxiliariesClear', 'headMustWait', 'lingerPassed'])
      expect(text).toContain(guard)
    expect(text).toContain('xstate.emit')
  })

  it('that comes later and leaves again changes nothing of what is decided', () => {
    const [inspected, alone] = [true, false].map((isInspected) => {
      const emitted: unknown[] = []
      const actor = createActor(providerScope, { input })
      actor.on('decided', (event) => emitted.push(event))
      actor.start()
      let microsteps = 0
      story.forEach((event, index) => {
        const subscription =
          isInspected && index % 2 === 0
            ? actor.system.inspect(({ type }) => {
                if (type === '@xstate.microstep') microsteps += 1
              })
            : null
        actor.send(event)
        subscription?.unsubscribe()
      })
      return { emitted, microsteps, persisted: JSON.stringify(actor.getPersistedSnapshot()) }
    })
    expect(inspected!.microsteps).toBeGreaterThan(10)
    expect({ ...inspected, microsteps: 0 }).toEqual(alone)
  })
})

describe('an event that is no fact', () => {
  const bad: ReadonlyArray<readonly [string, unknown, string]> = [
    ['without a time', { type: 'clock.woke' }, 'event.at'],
    ['of no known type', { type: 'call.vanished', at: 1 }, 'event.type'],
    ['of XState\u2019s own', { type: 'xstate.done.actor.x', at: 1 }, 'event.type'],
    ['of the chart\u2019s own', { type: 'event.finished', at: 1 }, 'event.type'],
  ]

  it.each(bad)('%s is refused: the actor says so, keeps what it knows, and goes on', (_, event, field) => {
    const [refused, logged]: [InvalidInput[], string[]] = [[], []]
    const actor = createActor(providerScope, { input, logger: (text) => logged.push(text) })
    actor.on('refused', ({ error }) => refused.push(error))
    actor.start()
    actor.send(story[0]!)
    const before = actor.getSnapshot()
    actor.send(event as ScopeEvent)
    expect(actor.getSnapshot()).toBe(before)
    expect(refused.map(({ problems }) => problems[0]?.field)).toEqual([field])
    expect(logged).toEqual([expect.stringContaining(`scope test refused an event: ${field}`)])
    actor.send(story[1]!)
    expect(actor.getSnapshot().context.scope.counts.auxiliaryWaiting).toBe(1)
    const [, actions] = transition(providerScope, before, event as ScopeEvent)
    expect(actions).toMatchObject([{ type: 'xstate.emit', params: { event: { type: 'refused' } } }])
  })

  it.each(bad)('%s stops the chart alone, which has no door', (_, event, field) => {
    if (field === 'event.type' && String((event as ScopeEvent).type) === 'event.finished') return
    const actor = createActor(scopeChart, { input })
    actor.subscribe({ error: () => {} })
    actor.start()
    actor.send(event as never)
    expect(actor.getSnapshot().error).toBeInstanceOf(InvalidInput)
  })

  it.each([
    [undefined, 'input.scope'],
    [{ scope: 7 }, 'input.scope'],
    [{ scope: 'x', at: Number.NaN }, 'input.at'],
    [{ scope: 'x', policy: { capacity: 0 } }, 'policy.capacity'],
  ])('an input of %j leaves an actor with that error', (bad, field) => {
    const actor = createActor(providerScope, { input: bad as never })
    expect(String(actor.getSnapshot().error)).toContain(field)
    expect(actor.getPersistedSnapshot()).toMatchObject({ status: 'error', scope: null })
  })
})

it('a scope that is asked for by name has seen nothing', () => {
  expect(contextFrom('mine')).toMatchObject({ scope: 'mine', state: 'idle', at: 0 })
})
