import { expect, it } from 'vitest'
import { activeStates, chartOf, chartPath } from '../../inspector/chart.ts'
import { arrowsOf } from '../../inspector/page/src/model/layout.ts'
import { scopeChart } from '../../machines/index.ts'

const chart = chartOf(scopeChart.config)!

it('draws the scope from its own definition: every state of the machine, and no other', () => {
  const own = (node: { readonly id: string; readonly states: object }): string[] => [
    node.id,
    ...Object.values(node.states).flatMap(own),
  ]
  expect(chart.states.map(({ id }) => id)).toEqual(own(scopeChart.root))
})

it('draws every transition of the machine that leads somewhere, with its guard', () => {
  type Node = typeof scopeChart.root
  const own = (node: Node): string[] => [
    ...[...(node.always ?? []), ...[...node.transitions.values()].flat()].flatMap(
      ({ source, target, guard }) => (target ?? []).map(({ id }) => `${source.id} ${id} ${guard ?? null}`),
    ),
    ...Object.values(node.states).flatMap((child) => own(child as Node)),
  ]
  const drawn = chart.edges.map(({ sourceId, targetId, guard }) => `${sourceId} ${targetId} ${guard}`)
  expect(drawn.sort()).toEqual(own(scopeChart.root).sort())
})

it('keeps nested states in their parents, with paths as the state is named', () => {
  expect(chart.states.find(({ id }) => id === 'scope.quietRamp')).toMatchObject({
    type: 'compound',
    initialId: 'scope.quietRamp.quiet',
  })
  expect(chartPath(chart, 'scope.quietRamp.quiet')).toBe('quietRamp.quiet')
  expect([...activeStates(chart, { quietRamp: 'admitting' })]).toEqual([
    'scope',
    'scope.quietRamp',
    'scope.quietRamp.admitting',
  ])
})

it('joins transitions between the same two states to one arrow', () => {
  const arrows = arrowsOf(chart)
  const joined = arrows.find(
    ({ sourceId, targetId }) => sourceId === 'scope.quietRamp' && targetId === 'scope.auxiliaryDraining',
  )
  expect(joined?.edges.map(({ guard }) => guard)).toEqual(['primariesGoneWithBacklog', 'fairnessDue'])
  expect(arrows.flatMap(({ edges }) => edges)).toHaveLength(chart.edges.length)
})

it.each([
  ['a sibling', { on: { GO: 'b' } }, 'm.b', 'GO', null],
  ['a sibling\u2019s child', { on: { GO: 'b.inner' } }, 'm.b.inner', 'GO', null],
  ['an id', { on: { GO: '#named' } }, 'named', 'GO', null],
  ['an id with a path', { on: { GO: '#m.b.inner' } }, 'm.b.inner', 'GO', null],
  [
    'an object with a guard',
    { on: { GO: [{ target: 'b', guard: { type: 'isOpen' } }] } },
    'm.b',
    'GO',
    'isOpen',
  ],
  ['a delay', { after: { 1000: 'b' } }, 'm.b', 'after 1000', null],
  ['no event at all', { always: { target: ['b'], guard: 'ready' } }, 'm.b', null, 'ready'],
  ['an invocation', { invoke: { src: 'x', onDone: 'b' } }, 'm.b', 'invoke done', null],
])('resolves a target given as %s', (_, a, targetId, event, guard) => {
  const foreign = chartOf({
    id: 'm',
    initial: 'a',
    states: { a, b: { states: { inner: {} } }, c: { id: 'named' } },
  })
  expect(foreign?.edges).toEqual([{ id: '0', sourceId: 'm.a', targetId, event, guard }])
})

it.each([[null], ['text'], [{ id: 'promise' }], [[]], [{ states: 'none' }]])(
  'finds no chart in %j',
  (definition) => {
    expect(chartOf(definition)).toBeNull()
  },
)

it('cuts a definition that is too large, and survives one without sense', () => {
  const states = Object.fromEntries(
    Array.from({ length: 5_000 }, (_, index) => [
      `s${index}`,
      { on: { GO: `s${index + 1}`, BAD: 7, LOST: 'nowhere' } },
    ]),
  )
  const cut = chartOf({ id: 'huge', initial: 's0', states })
  expect(cut?.states.length).toBe(500)
  expect(cut?.edges.length).toBeLessThanOrEqual(2_000)
})
