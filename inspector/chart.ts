/**
 * A statechart as nodes and edges, from a machine's own definition (XState's config, or the JSON of
 * one that streams in). Names only: no action, no description, no data of the machine is kept.
 */

export interface ChartState {
  /** XState's id: the machine's id and the path, dotted, unless the definition gives one. */
  readonly id: string
  readonly key: string
  /** Null for the machine itself. */
  readonly parentId: string | null
  readonly type: 'atomic' | 'compound' | 'parallel' | 'final' | 'history'
  /** Id of the state entered first; null where there is none. */
  readonly initialId: string | null
}

export interface ChartEdge {
  readonly id: string
  readonly sourceId: string
  readonly targetId: string
  /** The event's name; null for a transition that needs none. */
  readonly event: string | null
  /** The guard's name; null when it has none. */
  readonly guard: string | null
}

export interface Chart {
  readonly rootId: string
  /** Parents before their children. */
  readonly states: ReadonlyArray<ChartState>
  readonly edges: ReadonlyArray<ChartEdge>
}

/** Larger definitions than these are cut: a picture of more helps nobody. */
const maxStates = 500
const maxEdges = 2_000
/** An id holds the keys of all ancestors, so the depth bounds its length. */
const maxDepth = 32
const maxNameLength = 200

type Json = { readonly [key: string]: unknown }

const isObject = (value: unknown): value is Json =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

const nameOf = (name: string): string => name.slice(0, maxNameLength)

const typeOf = (node: Json): ChartState['type'] => {
  const { type } = node
  if (type === 'parallel' || type === 'final' || type === 'history') return type
  return isObject(node['states']) && Object.keys(node['states']).length > 0 ? 'compound' : 'atomic'
}

interface Found {
  readonly state: ChartState
  readonly node: Json
}

/** The chart of a definition; null when it is none. */
export const chartOf = (definition: unknown): Chart | null => {
  if (!isObject(definition) || !isObject(definition['states'])) return null
  const { id } = definition
  const rootId = typeof id === 'string' || typeof id === 'number' ? nameOf(String(id)) : 'machine'
  const found = new Map<string, Found>()
  collect(found, definition, { id: rootId, key: rootId, parentId: null }, maxDepth)
  const edges: ChartEdge[] = []
  const budget = { edges: maxEdges, looks: maxLooks }
  for (const { state, node } of found.values()) edges.push(...edgesOf(found, state, node, budget))
  return {
    rootId,
    states: [...found.values()].map(({ state }) => state),
    edges: edges.map((edge, index) => ({ ...edge, id: `${index}` })),
  }
}

const collect = (
  found: Map<string, Found>,
  node: Json,
  { id, key, parentId }: Pick<ChartState, 'id' | 'key' | 'parentId'>,
  depth: number,
): void => {
  if (found.size >= maxStates || depth === 0) return
  const { initial } = node
  const children = isObject(node['states']) ? node['states'] : {}
  const childId = (name: string): string => {
    const child = children[name]
    return isObject(child) && typeof child['id'] === 'string' ? nameOf(child['id']) : `${id}.${nameOf(name)}`
  }
  const initialKey = isObject(initial) ? initial['target'] : initial
  const initialId = typeof initialKey === 'string' ? childId(initialKey.replace(/^\./, '')) : null
  found.set(id, { state: { id, key, parentId, type: typeOf(node), initialId }, node })
  for (const [name, child] of Object.entries(children)) {
    if (!isObject(child)) continue
    collect(found, child, { id: childId(name), key: nameOf(name), parentId: id }, depth - 1)
  }
}

type Bare = Omit<ChartEdge, 'id'>

/** Transitions that are looked at: what streams in may name any number that lead nowhere. */
const maxLooks = 4 * maxEdges

const edgesOf = (
  found: ReadonlyMap<string, Found>,
  state: ChartState,
  node: Json,
  budget: { edges: number; looks: number },
): ReadonlyArray<ChartEdge> => {
  const bare: Bare[] = []
  const add = (event: string | null, transitions: unknown): void => {
    for (const transition of Array.isArray(transitions) ? transitions : [transitions]) {
      const { target, guard } = isObject(transition) ? transition : { target: transition, guard: undefined }
      for (const one of Array.isArray(target) ? target : [target]) {
        if (budget.edges === 0 || budget.looks === 0) return
        budget.looks -= 1
        const targetId = typeof one === 'string' ? resolve(found, state, one) : null
        // Without a target nothing is entered or left: there is no arrow to draw.
        if (targetId === null) continue
        budget.edges -= 1
        bare.push({ sourceId: state.id, targetId, event, guard: guardName(guard) })
      }
    }
  }
  if (isObject(node['on'])) for (const [event, to] of Object.entries(node['on'])) add(nameOf(event), to)
  if (node['always'] !== undefined) add(null, node['always'])
  if (isObject(node['after']))
    for (const [delay, to] of Object.entries(node['after'])) add(`after ${nameOf(delay)}`, to)
  if (node['onDone'] !== undefined) add('done', node['onDone'])
  const invoked = node['invoke']
  for (const one of Array.isArray(invoked) ? invoked : [invoked]) {
    if (!isObject(one)) continue
    if (one['onDone'] !== undefined) add('invoke done', one['onDone'])
    if (one['onError'] !== undefined) add('invoke error', one['onError'])
  }
  return bare.map((edge) => ({ id: '', ...edge }))
}

const guardName = (guard: unknown): string | null => {
  if (typeof guard === 'string') return nameOf(guard)
  if (isObject(guard) && typeof guard['type'] === 'string' && guard['type'] !== '')
    return nameOf(guard['type'])
  return guard === undefined || guard === null ? null : 'guard'
}

/** `#id`, `.child`, or a sibling's path. */
const resolve = (found: ReadonlyMap<string, Found>, from: ChartState, target: string): string | null => {
  const descend = (baseId: string, path: string): string | null => {
    let id = baseId
    for (const key of path.split('.')) {
      const child = [...found.values()].find(({ state }) => state.parentId === id && state.key === key)
      if (child === undefined) return null
      id = child.state.id
    }
    return id
  }
  if (target.startsWith('#')) {
    const id = target.slice(1)
    if (found.has(id)) return id
    const owner = [...found.keys()]
      .filter((one) => id.startsWith(`${one}.`))
      .sort((a, b) => b.length - a.length)[0]
    return owner === undefined ? null : descend(owner, id.slice(owner.length + 1))
  }
  if (target.startsWith('.')) return descend(from.id, target.slice(1))
  return descend(from.parentId ?? from.id, target)
}

type Value = string | { readonly [key: string]: Value }

/** Ids of the states that a state value stands for, ancestors included. */
export const activeStates = (chart: Chart, value: Value | null): ReadonlySet<string> => {
  const active = new Set<string>([chart.rootId])
  const enter = (parentId: string, part: Value): void => {
    const keys = typeof part === 'string' ? [part] : Object.keys(part)
    for (const key of keys) {
      const child = chart.states.find((state) => state.parentId === parentId && state.key === key)
      if (child === undefined) continue
      active.add(child.id)
      const inner = typeof part === 'string' ? undefined : part[key]
      if (inner !== undefined) enter(child.id, inner)
    }
  }
  if (value !== null) enter(chart.rootId, value)
  return active
}

/** Keys from the machine down to a state, dotted: `quietRamp.quiet`. */
export const chartPath = (chart: Chart, id: string): string => {
  const keys: string[] = []
  for (
    let state = chart.states.find((one) => one.id === id);
    state !== undefined && state.parentId !== null;
  ) {
    keys.unshift(state.key)
    const { parentId } = state
    state = chart.states.find((one) => one.id === parentId)
  }
  return keys.join('.')
}
