/**
 * Walks the statechart. The arrows of each state are read once from the chart's definition, so that an event
 * costs only its own decisions: XState's interpreter works out every step anew and copies the context for
 * each. A law in the tests shows that both give the same result. `walkerOf` refuses a chart with a feature
 * that the walker does not know, and names node and feature.
 */
import type { AnyStateMachine, AnyStateNode } from 'xstate'
import type { ScopeState } from '../model/decision.ts'
import type { ScopeEvent } from '../model/event.ts'
import type { ScopeContext } from '../state/context.ts'
import { checkWalkable } from './chart-check.ts'
import { type GuardName, guards } from './guards.ts'
import { begin, closeQuantum, enter, finish, takeIn } from './step.ts'

/** An arrow of the chart that needs no event, and where it ends. */
export interface Arrow {
  readonly guard: GuardName
  /** Its action closes a quantum; no other action stands on an arrow. */
  readonly closesQuantum: boolean
  readonly to: ScopeState
  /** Ids of the chart's nodes that its arrow joins. */
  readonly sourceId: string
  readonly targetId: string
}

interface WalkedArrow extends Arrow {
  readonly holds: (scope: ScopeContext) => boolean
}

/** A node's path as the state's name. */
const nameOf = ({ path }: AnyStateNode): ScopeState => path.join('.') as ScopeState

/** The state that entering a node reaches: the node itself, or the leaf under its initial children. */
const leafOf = (node: AnyStateNode): AnyStateNode =>
  node.type === 'compound' ? leafOf(node.initial.target[0] as AnyStateNode) : node

const leavesOf = (node: AnyStateNode): ReadonlyArray<AnyStateNode> =>
  node.type === 'compound' ? Object.values(node.states).flatMap(leavesOf) : [node]

/** The node and its ancestors, from the inside out: an inner transition comes before an outer one. */
const lineOf = (node: AnyStateNode): ReadonlyArray<AnyStateNode> =>
  node.parent === undefined ? [node] : [node, ...lineOf(node.parent)]

/** The arrows out of every state, in the order in which they are tried. */
const arrowsOf = (machine: AnyStateMachine): ReadonlyMap<ScopeState, ReadonlyArray<WalkedArrow>> =>
  new Map(
    leavesOf(machine.root).map((leaf) => [
      nameOf(leaf),
      lineOf(leaf).flatMap(({ always = [], id }) =>
        always.map(({ guard, target, actions }) => {
          const node = target?.[0] as AnyStateNode
          return {
            guard: guard as GuardName,
            holds: guards[guard as GuardName],
            closesQuantum: actions.length > 0,
            to: nameOf(leafOf(node)),
            sourceId: id,
            targetId: node.id,
          }
        }),
      ),
    ]),
  )

/**
 * Returns the function that walks a chart: it takes an event in, then follows arrows whose guards hold until
 * none holds. Throws an error that names node and feature for a chart with a feature that the walker does not
 * know.
 */
export const walkerOf = (machine: AnyStateMachine) => {
  checkWalkable(machine)
  const arrows = arrowsOf(machine)
  const wayOut = (scope: ScopeContext): WalkedArrow | undefined => {
    // Every step of every event runs this: a loop allocates no closure.
    for (const arrow of arrows.get(scope.state) ?? []) if (arrow.holds(scope)) return arrow
    return undefined
  }

  return (before: ScopeContext, event: ScopeEvent, taken?: (arrow: Arrow) => void): ScopeContext => {
    const draft = begin(before, event.at)
    takeIn(draft, event)
    for (let arrow = wayOut(draft); arrow !== undefined; arrow = wayOut(draft)) {
      if (arrow.closesQuantum) closeQuantum(draft)
      enter(draft, arrow.to)
      taken?.(arrow)
    }
    finish(draft)
    return draft
  }
}
