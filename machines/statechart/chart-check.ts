/**
 * The features that a chart may have if it is to be walked. The list names the known ones, so that a future
 * XState feature is refused as well.
 */
import type { AnyStateMachine, AnyStateNode } from 'xstate'
import { guards } from './guards.ts'

/** The event that the chart raises for itself, after the last step of every event. */
export const finishedType = 'event.finished'

/** The root's actions for an event, by its event descriptor. No other actions may stand on an event. */
export const rootActions: Readonly<Record<string, ReadonlyArray<string>>> = {
  '*': ['takeIn', 'finishLater'],
  [finishedType]: ['finish', 'emitDecisions'],
}

const words = ['id', 'description', 'meta', 'tags', 'type'] as const
const knownKeys = {
  root: new Set<string>([
    ...words,
    'version',
    'schemas',
    'types',
    'context',
    'on',
    'initial',
    'states',
    'always',
  ]),
  compound: new Set<string>([...words, 'initial', 'states', 'always']),
  leaf: new Set<string>([...words, 'states', 'entry', 'always']),
}
const knownTransitionKeys = new Set(['description', 'meta', 'guard', 'target', 'actions', 'reenter'])

const refuse = (node: AnyStateNode, feature: string): never => {
  throw new Error(`the scope's walk does not know ${feature}, which state ${node.id} has`)
}

type Config = Readonly<Record<string, unknown>>

const isThere = (value: unknown): boolean =>
  value !== undefined && !(Array.isArray(value) && value.length === 0)

const listOf = (value: unknown): ReadonlyArray<unknown> =>
  value === undefined ? [] : Array.isArray(value) ? value : [value]

const shown = (value: unknown): string =>
  typeof value === 'function' ? 'a function' : (JSON.stringify(value) ?? 'nothing')

const checkKeys = (node: AnyStateNode, config: Config, known: ReadonlySet<string>, where: string): void => {
  for (const [key, value] of Object.entries(config))
    if (!known.has(key) && isThere(value)) refuse(node, `\`${key}\` in ${where}`)
}

/** Entering a leaf runs exactly one action, named after the leaf. */
const checkEntry = (node: AnyStateNode): void => {
  const [entry, second] = listOf(node.config.entry) as ReadonlyArray<
    { readonly type?: string; readonly params?: { readonly state?: string } } | undefined
  >
  if (second !== undefined) refuse(node, 'a second `entry` action')
  if (entry?.type !== 'enter') refuse(node, `the \`entry\` action ${shown(entry)}`)
  if (entry?.params?.state !== node.path.join('.'))
    refuse(node, `an \`entry\` that enters ${shown(entry?.params)}`)
}

const isWithin = (node: AnyStateNode, outer: AnyStateNode): boolean =>
  node === outer || (node.parent !== undefined && isWithin(node.parent, outer))

const checkArrow = (node: AnyStateNode, config: Config, targets: ReadonlyArray<AnyStateNode>): void => {
  checkKeys(node, config, knownTransitionKeys, '`always`')
  const { guard, actions, reenter } = config
  if (typeof guard !== 'string' || !Object.hasOwn(guards, guard))
    refuse(node, `the guard ${shown(guard)} in \`always\``)
  if (targets.length !== 1) refuse(node, `${targets.length} targets in \`always\``)
  const [target] = targets as [AnyStateNode]
  if (target.type === 'history') refuse(node, 'a target with history in `always`')
  if (reenter === true) refuse(node, '`reenter` in `always`')
  if (isWithin(target, node) || isWithin(node, target)) refuse(node, 'a target within itself in `always`')
  const names = listOf(actions)
  if (names.length > 1 || (names.length === 1 && names[0] !== 'closeQuantum'))
    refuse(node, `the actions ${shown(names.map(shown))} in \`always\``)
}

const checkRoot = (root: AnyStateNode): void => {
  const on = (root.config.on ?? {}) as Config
  const descriptors = new Set([...Object.keys(on), ...Object.keys(rootActions)])
  for (const descriptor of descriptors) {
    const where = `\`on\` ${descriptor}`
    const known = rootActions[descriptor]
    if (known === undefined) refuse(root, where)
    const [handler = {}, second] = listOf(on[descriptor]) as ReadonlyArray<Config | undefined>
    if (second !== undefined) refuse(root, `a second transition in ${where}`)
    checkKeys(root, handler, new Set(['actions', 'description']), where)
    const actions = listOf(handler['actions'])
    if (known?.length !== actions.length || known.some((name, index) => name !== actions[index]))
      refuse(root, `the actions ${shown(actions.map(shown))} in ${where}`)
  }
}

const checkNode = (node: AnyStateNode): void => {
  const { config, type, parent } = node
  if (type !== 'compound' && type !== 'atomic') refuse(node, `the type \`${type}\``)
  const isLeaf = type === 'atomic'
  const kind = parent === undefined ? 'root' : isLeaf ? 'leaf' : 'compound'
  checkKeys(node, config as Config, knownKeys[kind], 'a state')
  if (isLeaf) checkEntry(node)
  else if (node.initial.actions.length > 0) refuse(node, 'actions on `initial`')
  const always = node.always ?? []
  for (const [index, config] of listOf(node.config.always).entries()) {
    if (typeof config !== 'object' || config === null) refuse(node, 'an `always` without a guard')
    checkArrow(node, config as Config, (always[index]?.target ?? []) as ReadonlyArray<AnyStateNode>)
  }
  for (const child of Object.values(node.states)) checkNode(child)
}

/** Throws an error that names node and feature when `machine` has a feature that the walker does not know. */
export const checkWalkable = ({ root, config }: AnyStateMachine): void => {
  checkKeys(root, config as Config, knownKeys.root, 'a state')
  if (root.type !== 'compound') refuse(root, `the type \`${root.type}\``)
  checkRoot(root)
  checkNode(root)
}
