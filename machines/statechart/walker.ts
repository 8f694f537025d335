/**
 * Walks the statechart. The ways out of each state are read once from the chart's own definition,
 * so that an event costs what it decides: XState's interpreter works every step out anew and
 * copies the context for each. That both come to the same is a law in the tests. What the walk does
 * not know of, a chart may not have: `walkerOf` refuses it, by node and feature.
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

/** Where entering a node ends: in itself, or in its initial child. */
const leafOf = (node: AnyStateNode): AnyStateNode =>
  node.type === 'compound' ? leafOf(node.initial.target[0] as AnyStateNode) : node

const leavesOf = (node: AnyStateNode): ReadonlyArray<AnyStateNode> =>
  node.type === 'compound' ? Object.values(node.states).flatMap(leavesOf) : [node]

/** From the node itself outwards: an inner transition comes before an outer one. */
const lineOf = (node: AnyStateNode): ReadonlyArray<AnyStateNode> =>
  node.parent === undefined ? [node] : [node, ...lineOf(node.parent)]

/** The ways out of every state, in the order in which they are tried. */
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
 * How to walk a chart: takes an event in, then goes where a guard leads until none does. Throws an
 * error that names node and feature for a chart that has what the walk does not know.
 */
export const walkerOf = (machine: AnyStateMachine) => {
  checkWalkable(machine)
  const arrows = arrowsOf(machine)
  const wayOut = (scope: ScopeContext): WalkedArrow | undefined => {
    // Every step of every event comes here: a loop costs no closure.
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
