/** Draws a statechart that ELK has laid out. Active states and the arrows just taken are lit. */
import '@xyflow/react/dist/base.css'
import {
  BaseEdge,
  Controls,
  type Edge,
  EdgeLabelRenderer,
  type EdgeProps,
  Handle,
  type Node,
  type NodeProps,
  Position,
  ReactFlow,
  ReactFlowProvider,
  useReactFlow,
} from '@xyflow/react'
import ELK from 'elkjs/lib/elk-api.js'
import elkWorkerUrl from 'elkjs/lib/elk-worker.min.js?url'
import { useEffect, useMemo, useRef, useState } from 'react'
import { type Chart, chartPath } from '../../../chart.ts'
import { useSize } from '../hooks/size.ts'
import { type Layout, labelOf, layOut, type PlacedArrow, type PlacedState } from '../model/layout.ts'
import { stateTokens } from '../model/words.ts'

type StateNode = Node<{ readonly placed: PlacedState; readonly isActive: boolean; readonly tone: string }>
type ArrowEdge = Edge<{ readonly placed: PlacedArrow; readonly lit: ReadonlySet<string> }>

const StateBox = ({ data: { placed, isActive, tone } }: NodeProps<StateNode>) => (
  <div
    className={`chart-state ${placed.state.type} ${tone} ${isActive ? 'active' : ''}`}
    data-state={placed.state.id}
    data-active={isActive}
  >
    <Handle type="target" position={Position.Top} isConnectable={false} />
    <span className="chart-state-name">
      <i className="chart-dot" aria-hidden="true" />
      {placed.state.key}
    </span>
    <Handle type="source" position={Position.Bottom} isConnectable={false} />
  </div>
)

const cornerRadius = 7

/** A line through the points with rounded corners. */
const pathOf = (points: PlacedArrow['points']): string => {
  const [first, ...rest] = points
  if (first === undefined) return ''
  let path = `M${first.x},${first.y}`
  rest.forEach((point, index) => {
    const next = rest[index + 1]
    const before = index === 0 ? first : (rest[index - 1] as typeof first)
    if (next === undefined) {
      path += `L${point.x},${point.y}`
      return
    }
    const toward = (end: typeof first) => {
      const length = Math.hypot(end.x - point.x, end.y - point.y) || 1
      const radius = Math.min(cornerRadius, length / 2)
      return `${point.x + ((end.x - point.x) / length) * radius},${point.y + ((end.y - point.y) / length) * radius}`
    }
    path += `L${toward(before)}Q${point.x},${point.y} ${toward(next)}`
  })
  return path
}

const ArrowLine = ({ id, data, markerEnd }: EdgeProps<ArrowEdge>) => {
  if (data === undefined) return null
  const { placed, lit } = data
  const { label, arrow, points } = placed
  return (
    <>
      <BaseEdge
        id={id}
        path={pathOf(points)}
        className={lit.size > 0 ? 'chart-arrow lit' : 'chart-arrow'}
        {...(markerEnd === undefined ? {} : { markerEnd })}
      />
      {label !== null && (
        <EdgeLabelRenderer>
          <div
            className={lit.size > 0 ? 'chart-label lit' : 'chart-label'}
            style={{
              transform: `translate(${label.x}px,${label.y}px)`,
              width: label.width,
              height: label.height,
            }}
          >
            {arrow.edges.map((edge) => (
              <span key={edge.id} data-lit={lit.has(edge.id)}>
                {labelOf(edge)}
              </span>
            ))}
          </div>
        </EdgeLabelRenderer>
      )}
    </>
  )
}

const nodeTypes = { state: StateBox }
const edgeTypes = { arrow: ArrowLine }

let engine: InstanceType<typeof ELK> | null = null

/** Layouts are made in a worker, which starts with the first chart. */
const useLayout = (chart: Chart): Layout | null => {
  const [layout, setLayout] = useState<{ readonly chart: Chart; readonly layout: Layout } | null>(null)
  useEffect(() => {
    let isWanted = true
    engine ??= new ELK({ workerFactory: () => new Worker(elkWorkerUrl) })
    layOut(chart, engine).then((made) => {
      if (isWanted) setLayout({ chart, layout: made })
    }, console.error)
    return () => {
      isWanted = false
    }
  }, [chart])
  return layout?.chart === chart ? layout.layout : null
}

interface ChartViewProps {
  readonly chart: Chart
  readonly active: ReadonlySet<string>
  /** Ids of the edges that the last event took. */
  readonly taken: ReadonlySet<string>
  readonly name: string
}

export const ChartView = (props: ChartViewProps) => {
  const layout = useLayout(props.chart)
  if (layout === null)
    return (
      <div className="chart">
        <p className="chart-wait">Drawing the statechart…</p>
      </div>
    )
  return (
    <ReactFlowProvider>
      <Drawn {...props} layout={layout} />
    </ReactFlowProvider>
  )
}

/** The scope's own states have colours of their own; the states of other machines share one. */
const toneOf = (path: string): string => (stateTokens as Readonly<Record<string, string>>)[path] ?? ''

const arrowEdge = (placed: PlacedArrow, taken: ReadonlySet<string>): ArrowEdge => {
  const { id, sourceId, targetId, edges } = placed.arrow
  const lit = new Set(edges.map((edge) => edge.id).filter((edgeId) => taken.has(edgeId)))
  return {
    id,
    source: sourceId,
    target: targetId,
    type: 'arrow',
    zIndex: 2,
    markerEnd: lit.size > 0 ? 'chart-tip-lit' : 'chart-tip',
    data: { placed, lit },
  }
}

const Drawn = ({ chart, active, taken, name, layout }: ChartViewProps & { readonly layout: Layout }) => {
  const ref = useRef<HTMLElement>(null)
  const { width, height } = useSize(ref)
  const { fitBounds } = useReactFlow()
  const nodes = useMemo<StateNode[]>(
    () =>
      layout.states.map((placed) => ({
        id: placed.state.id,
        type: 'state',
        position: { x: placed.x, y: placed.y },
        width: placed.width,
        height: placed.height,
        ...(placed.state.parentId === chart.rootId ? {} : { parentId: placed.state.parentId as string }),
        data: {
          placed,
          isActive: active.has(placed.state.id),
          tone: toneOf(chartPath(chart, placed.state.id)),
        },
      })),
    [layout, chart, active],
  )
  const edges = useMemo(() => layout.arrows.map((placed) => arrowEdge(placed, taken)), [layout, taken])
  useEffect(() => {
    // Arrows and labels reach beyond the boxes, so the view fits the whole drawing.
    if (width > 0 && height > 0)
      void fitBounds({ x: 0, y: 0, width: layout.width, height: layout.height }, { padding: 0.02 })
  }, [width, height, layout, fitBounds])
  const current = chart.states.filter(({ id }) => id !== chart.rootId && active.has(id)).map(({ key }) => key)
  return (
    <section
      className="chart"
      ref={ref}
      aria-label={`Statechart of ${name}: now in ${current.join(', ') || 'no state'}`}
    >
      <Tips />
      <ReactFlow
        nodes={nodes}
        edges={edges}
        nodeTypes={nodeTypes}
        edgeTypes={edgeTypes}
        nodesDraggable={false}
        nodesConnectable={false}
        nodesFocusable={false}
        edgesFocusable={false}
        elementsSelectable={false}
        minZoom={0.2}
        maxZoom={1.3}
        proOptions={{ hideAttribution: true }}
      >
        <Controls showInteractive={false} />
      </ReactFlow>
    </section>
  )
}

const Tips = () => (
  <svg className="chart-tips" aria-hidden="true">
    <defs>
      {['chart-tip', 'chart-tip-lit'].map((id) => (
        <marker
          key={id}
          id={id}
          viewBox="0 0 8 8"
          refX="7"
          refY="4"
          markerWidth="9"
          markerHeight="9"
          orient="auto"
        >
          <path d="M0,0.5 L8,4 L0,7.5 Z" className={id} />
        </marker>
      ))}
    </defs>
  </svg>
)
