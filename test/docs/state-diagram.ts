/** The statechart as a Mermaid diagram, from the machine's own definition. */
import { type ChartState, chartOf } from '../../inspector/chart.ts'
import { providerScope } from '../../machines/index.ts'

const nameOf = ({ id }: Pick<ChartState, 'id'>): string => id.split('.').at(-1) as string

export const stateDiagram = (): string => {
  const chart = chartOf(providerScope.config)
  if (chart === null) throw new Error('the machine has no chart')
  const { rootId, states, edges } = chart
  const lines: string[] = []
  const draw = (parent: ChartState, indent: string): void => {
    if (parent.initialId !== null) lines.push(`${indent}[*] --> ${nameOf({ id: parent.initialId })}`)
    for (const state of states.filter(({ parentId }) => parentId === parent.id)) {
      if (state.type !== 'compound') continue
      lines.push(`${indent}state ${nameOf(state)} {`)
      draw(state, `${indent}  `)
      lines.push(`${indent}}`)
    }
  }
  draw(states.find(({ id }) => id === rootId) as ChartState, '  ')
  for (const { sourceId, targetId, guard, event } of edges) {
    if (sourceId === rootId) continue
    lines.push(`  ${nameOf({ id: sourceId })} --> ${nameOf({ id: targetId })}: ${guard ?? event}`)
  }
  return ['```mermaid', 'stateDiagram-v2', ...lines, '```'].join('\n')
}
