/**
 * XState features that the walker lacks are refused when the walker is made, by node and feature, never
 * ignored.
 */
import { describe, expect, it } from 'vitest'
import { createActor, createMachine, emit, fromPromise, not } from 'xstate'
import { scopeChart } from '../../../machines/index.ts'
import { walkerOf } from '../../../machines/statechart/walker.ts'

type Config = Readonly<Record<string, unknown>>

const { config } = scopeChart
const states = config.states as Readonly<Record<string, Config>>
const settled = states['settled'] as Config
const ramp = states['quietRamp'] as Config
const inRamp = ramp['states'] as Readonly<Record<string, Config>>

/** The scope's chart with something more, as XState takes it. */
const grown = (change: Config) =>
  createMachine({ ...config, ...change } as never, scopeChart.implementations as never)
const withSettled = (change: Config): Config => ({
  states: { ...states, settled: { ...settled, ...change } },
})
const withRamp = (change: Config): Config => ({ states: { ...states, quietRamp: { ...ramp, ...change } } })
const withArrow = (arrow: unknown): Config =>
  withSettled({ always: [...(settled['always'] as unknown[]), arrow] })

const toIdle = { guard: 'lingerPassed', target: 'idle' }
const note = emit({ type: 'decided' } as never)

describe('a chart is refused that has', () => {
  it.each<[string, Config, string, string]>([
    ['exit actions', withSettled({ exit: note }), 'scope.settled', '`exit` in a state'],
    [
      'a second entry action',
      withSettled({ entry: [settled['entry'], note] }),
      'scope.settled',
      'a second `entry` action',
    ],
    ['another entry action', withSettled({ entry: note }), 'scope.settled', 'the `entry` action a function'],
    ['no entry action', withSettled({ entry: [] }), 'scope.settled', 'the `entry` action nothing'],
    [
      'an entry into another state',
      withSettled({ entry: { type: 'enter', params: { state: 'idle' } } }),
      'scope.settled',
      'an `entry` that enters {"state":"idle"}',
    ],
    [
      'entry actions of a state with states',
      withRamp({ entry: note }),
      'scope.quietRamp',
      '`entry` in a state',
    ],
    ['entry actions of the root', { entry: note }, 'scope', '`entry` in a state'],
    [
      'an action on an arrow',
      withArrow({ ...toIdle, actions: note }),
      'scope.settled',
      'the actions ["a function"] in `always`',
    ],
    [
      'a named action on an arrow',
      withArrow({ ...toIdle, actions: 'takeIn' }),
      'scope.settled',
      'the actions ["\\"takeIn\\""] in `always`',
    ],
    [
      'two actions on an arrow',
      withArrow({ ...toIdle, actions: ['closeQuantum', 'closeQuantum'] }),
      'scope.settled',
      'the actions ["\\"closeQuantum\\"","\\"closeQuantum\\""] in `always`',
    ],
    ['`on` in a state', withSettled({ on: { 'clock.woke': 'idle' } }), 'scope.settled', '`on` in a state'],
    [
      'another event at the root',
      { on: { ...config.on, 'clock.woke': '.idle' } },
      'scope',
      '`on` clock.woke',
    ],
    [
      'another action at an event',
      { on: { ...config.on, '*': { actions: ['takeIn', note, 'finishLater'] } } },
      'scope',
      'the actions ["\\"takeIn\\"","a function","\\"finishLater\\""] in `on` *',
    ],
    [
      'a guard at an event',
      { on: { ...config.on, '*': { guard: 'primaryWanted', actions: ['takeIn', 'finishLater'] } } },
      'scope',
      '`guard` in `on` *',
    ],
    [
      'a second transition at an event',
      { on: { ...config.on, '*': [{ actions: ['takeIn', 'finishLater'] }, { target: '.idle' }] } },
      'scope',
      'a second transition in `on` *',
    ],
    [
      'no end of an event',
      { on: { '*': { actions: ['takeIn', 'finishLater'] } } },
      'scope',
      'the actions [] in `on` event.finished',
    ],
    ['a delay', withSettled({ after: { 1000: 'idle' } }), 'scope.settled', '`after` in a state'],
    [
      'a guard with parameters',
      withArrow({ ...toIdle, guard: { type: 'lingerPassed', params: { ms: 1 } } }),
      'scope.settled',
      'the guard {"type":"lingerPassed","params":{"ms":1}} in `always`',
    ],
    [
      'a guard made of guards',
      withArrow({ ...toIdle, guard: not('lingerPassed') }),
      'scope.settled',
      'the guard a function in `always`',
    ],
    [
      'a guard of its own',
      withArrow({ ...toIdle, guard: () => false }),
      'scope.settled',
      'the guard a function in `always`',
    ],
    [
      'an arrow without a guard',
      withArrow({ target: 'idle' }),
      'scope.settled',
      'the guard nothing in `always`',
    ],
    [
      'states side by side',
      withRamp({ type: 'parallel', initial: undefined }),
      'scope.quietRamp',
      'the type `parallel`',
    ],
    [
      'history',
      withRamp({ states: { ...inRamp, before: { type: 'history' } } }),
      'scope.quietRamp.before',
      'the type `history`',
    ],
    ['an end', { states: { ...states, over: { type: 'final' } } }, 'scope.over', 'the type `final`'],
    [
      'an invocation',
      withSettled({ invoke: { src: fromPromise(async () => 1) } }),
      'scope.settled',
      '`invoke` in a state',
    ],
    [
      'what comes when a state is done',
      withRamp({ onDone: 'idle' }),
      'scope.quietRamp',
      '`onDone` in a state',
    ],
    ['an output', { output: 1 }, 'scope', '`output` in a state'],
    [
      'a target of two states',
      withArrow({ guard: 'lingerPassed', target: ['idle', 'settled'] }),
      'scope.settled',
      '2 targets in `always`',
    ],
    [
      'an arrow that leads nowhere',
      withArrow({ guard: 'primaryDue' }),
      'scope.settled',
      '0 targets in `always`',
    ],
    [
      'an arrow that enters again',
      withArrow({ ...toIdle, reenter: true }),
      'scope.settled',
      '`reenter` in `always`',
    ],
    [
      'an arrow to itself',
      withArrow({ guard: 'primaryDue', target: 'settled' }),
      'scope.settled',
      'a target within itself in `always`',
    ],
    [
      'an arrow inwards',
      withRamp({ always: [{ guard: 'primaryDue', target: '.quiet' }] }),
      'scope.quietRamp',
      'a target within itself in `always`',
    ],
    [
      'actions on the way to a first state',
      withRamp({ initial: { target: 'quiet', actions: note } }),
      'scope.quietRamp',
      'actions on `initial`',
    ],
    ['a bound on its steps', { options: { maxIterations: 3 } }, 'scope', '`options` in a state'],
    ['a route', withSettled({ route: {} }), 'scope.settled', '`route` in a state'],
    ['a word that nobody knows', withSettled({ patience: 1 }), 'scope.settled', '`patience` in a state'],
  ])('%s', (_, change, node, feature) => {
    const machine = grown(change)
    // XState itself takes it: the refusal is the walk's.
    const status = createActor(machine, { input: { scope: 'test' } as never }).getSnapshot().status
    expect(['active', 'error']).toContain(status)
    expect(() => walkerOf(machine)).toThrow(
      `the scope's walk does not know ${feature}, which state ${node} has`,
    )
  })

  it('no states', () => {
    expect(() => walkerOf(createMachine({ id: 'scope' }))).toThrow('the type `atomic`, which state scope has')
  })
})

describe('a chart is walked that has', () => {
  it.each<[string, Config]>([
    ['nothing more', {}],
    [
      'words for its readers',
      withSettled({ description: 'Over.', meta: { colour: 'grey' }, tags: ['calm'] }),
    ],
    ['empty lists', withSettled({ exit: [], invoke: [] })],
    ['one more arrow', withArrow({ ...toIdle, description: 'Again.' })],
    [
      'one more state',
      { states: { ...states, over: { entry: { type: 'enter', params: { state: 'over' } } } } },
    ],
  ])('%s', (_, change) => {
    expect(walkerOf(grown(change))).toBeTypeOf('function')
  })

  it('and an exit action, which it refuses, is one that XState runs', () => {
    let ran = 0
    const count = () => {
      ran += 1
    }
    const machine = grown({ states: { ...states, idle: { ...states['idle'], exit: count } } })
    const actor = createActor(machine, { input: { scope: 'test' } as never }).start()
    actor.send({ type: 'turn.began', at: 1, turnId: 't', betweenRounds: 'hold' } as never)
    expect(ran).toBe(1)
  })
})
