/**
 * The tags of principals that neither wait nor run, while virtual time has not passed them. A principal that comes
 * back takes its tag up again, so that one call at a time buys no more than a backlog.
 */
import { HashMap } from 'effect'
import * as order from '../collections/order.ts'
import { type Debts, lookup } from '../state/context.ts'

/** The most principals that are remembered. Beyond that the least debt is forgiven: the lead of one call over virtual time. */
const remembered = 512

export const debtOf = (debts: Debts, name: string): number | undefined => lookup(debts.tags, name)

const standing = (name: string, tag: number): order.Standing => ({ name, tag, place: 0 })

export const forgiven = (debts: Debts, name: string): Debts => {
  const tag = debtOf(debts, name)
  if (tag === undefined) return debts
  return { order: order.take(debts.order, standing(name, tag)), tags: HashMap.remove(debts.tags, name) }
}

const trimmed = (debts: Debts, virtualTokens: number): Debts => {
  let kept = debts
  for (;;) {
    const first = order.least(kept.order)
    if (first === undefined) return kept
    if (first.tag > virtualTokens && order.sizeOf(kept.order) <= remembered) return kept
    kept = forgiven(kept, first.name)
  }
}

export const owing = (debts: Debts, name: string, tag: number, virtualTokens: number): Debts => {
  if (tag <= virtualTokens) return debts
  const others = forgiven(debts, name)
  const added = {
    order: order.put(others.order, standing(name, tag)),
    tags: HashMap.set(others.tags, name, tag),
  }
  return trimmed(added, virtualTokens)
}

/** Without those that virtual time has passed. */
export const passed = (debts: Debts, virtualTokens: number): Debts =>
  debts.order === null ? debts : trimmed(debts, virtualTokens)

/** Each name with its tag, the least first. */
export const written = (debts: Debts): ReadonlyArray<readonly [string, number]> =>
  [...order.ascending(debts.order)].map(({ name, tag }) => [name, tag] as const)

/** What `written` gave. */
export const readBack = (rows: ReadonlyArray<readonly [string, number]>): Debts => ({
  order: rows.reduce<order.Order>((all, [name, tag]) => order.put(all, standing(name, tag)), null),
  tags: HashMap.fromIterable(rows),
})
