/** A chart as ELK takes it, and ELK's answer as positions. No DOM: the caller gives the engine. */
import type { ELK, ElkExtendedEdge, ElkNode } from 'elkjs/lib/elk-api.js'
import type { Chart, ChartEdge, ChartState } from '../../../chart.ts'

/** All transitions from one state to another: one arrow, one line of text each. */
export interface Arrow {
  readonly id: string
  readonly sourceId: string
  readonly targetId: string
  readonly edges: ReadonlyArray<ChartEdge>
}

export interface PlacedState {
  readonly state: ChartState
  /** Relative to the corner of its parent. */
  readonly x: number
  readonly y: number
  readonly width: number
  readonly height: number
}

export interface PlacedArrow {
  readonly arrow: Arrow
  readonly points: ReadonlyArray<{ readonly x: number; readonly y: number }>
  readonly label: {
    readonly x: number
    readonly y: number
    readonly width: number
    readonly height: number
  } | null
}

export interface Layout {
  readonly width: number
  readonly height: number
  readonly states: ReadonlyArray<PlacedState>
  readonly arrows: ReadonlyArray<PlacedArrow>
}

export const labelOf = ({ event, guard }: ChartEdge): string =>
  [event ?? '', guard === null ? '' : `[${guard}]`].filter((part) => part !== '').join(' ')

export const arrowsOf = (chart: Chart): ReadonlyArray<Arrow> => {
  const groups = Map.groupBy(chart.edges, ({ sourceId, targetId }) => `${sourceId}\u0000${targetId}`)
  return [...groups.values()].map((edges, index) => {
    const [{ sourceId, targetId }] = edges as [ChartEdge]
    return { id: `arrow-${index}`, sourceId, targetId, edges }
  })
}

const charWidth = 6.8
const lineHeight = 16
const headHeight = 30
const minStateWidth = 108

export const isLeaf = (chart: Chart, { id }: ChartState): boolean =>
  !chart.states.some(({ parentId }) => parentId === id)

const options = {
  'elk.algorithm': 'layered',
  'elk.direction': 'DOWN',
  'elk.hierarchyHandling': 'INCLUDE_CHILDREN',
  'elk.json.edgeCoords': 'ROOT',
  'elk.edgeRouting': 'ORTHOGONAL',
  'elk.layered.spacing.nodeNodeBetweenLayers': '24',
  'elk.layered.spacing.edgeNodeBetweenLayers': '12',
  'elk.spacing.nodeNode': '26',
  'elk.spacing.edgeNode': '14',
  'elk.spacing.edgeEdge': '12',
  'elk.spacing.edgeLabel': '4',
  // The layout follows the definition's order, from the initial state on.
  'elk.layered.cycleBreaking.strategy': 'MODEL_ORDER',
  'elk.layered.considerModelOrder.strategy': 'NODES_AND_EDGES',
  'elk.layered.nodePlacement.strategy': 'NETWORK_SIMPLEX',
}

const elkNode = (chart: Chart, state: ChartState): ElkNode => {
  const children = chart.states.filter(({ parentId }) => parentId === state.id)
  const width = Math.max(minStateWidth, state.key.length * 8 + 40)
  if (children.length === 0) return { id: state.id, width, height: 40 }
  return {
    id: state.id,
    children: children.map((child) => elkNode(chart, child)),
    layoutOptions: {
      'elk.padding': `[top=${headHeight + 14},left=18,bottom=18,right=18]`,
      'elk.nodeSize.constraints': 'MINIMUM_SIZE',
      'elk.nodeSize.minimum': `(${width},60)`,
    },
  }
}

const elkEdge = ({ id, sourceId, targetId, edges }: Arrow): ElkExtendedEdge => {
  const lines = edges.map(labelOf).filter((line) => line !== '')
  const text = lines.join('\n')
  const width = Math.max(...lines.map((line) => line.length), 0) * charWidth + 10
  const labels =
    text === '' ? [] : [{ id: `${id}-label`, text, width, height: lines.length * lineHeight + 4 }]
  return { id, sources: [sourceId], targets: [targetId], labels }
}

/** Places the machine's states (the machine itself is the paper, not a box). */
export const layOut = async (chart: Chart, engine: Pick<ELK, 'layout'>): Promise<Layout> => {
  const arrows = arrowsOf(chart)
  const top = chart.states.filter(({ parentId }) => parentId === chart.rootId)
  const placed: ElkNode & { readonly edges?: ElkExtendedEdge[] } = await engine.layout({
    id: chart.rootId,
    layoutOptions: options,
    children: top.map((state) => elkNode(chart, state)),
    edges: arrows
      .filter(({ sourceId, targetId }) => sourceId !== chart.rootId && targetId !== chart.rootId)
      .map(elkEdge),
  })
  const states: PlacedState[] = []
  const visit = (node: ElkNode): void => {
    const state = chart.states.find(({ id }) => id === node.id)
    const { x = 0, y = 0, width = 0, height = 0 } = node
    if (state !== undefined && state.id !== chart.rootId) states.push({ state, x, y, width, height })
    for (const child of node.children ?? []) visit(child)
  }
  visit(placed)
  return {
    width: placed.width ?? 0,
    height: placed.height ?? 0,
    states,
    arrows: (placed.edges ?? []).map((edge) => placedArrow(arrows, edge)),
  }
}

const placedArrow = (arrows: ReadonlyArray<Arrow>, edge: ElkExtendedEdge): PlacedArrow => {
  const [section] = edge.sections ?? []
  const [label] = edge.labels ?? []
  const points =
    section === undefined ? [] : [section.startPoint, ...(section.bendPoints ?? []), section.endPoint]
  return {
    arrow: arrows.find(({ id }) => id === edge.id) as Arrow,
    points,
    label:
      label === undefined
        ? null
        : { x: label.x ?? 0, y: label.y ?? 0, width: label.width ?? 0, height: label.height ?? 0 },
  }
}
