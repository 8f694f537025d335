/** A scope whose calls stand where a record says, which may be elsewhere than this version would have put them. */
import { HashMap } from 'effect'
import { type Ending, type EndingRow, endingOf as endingIn } from '../collections/ended-log.ts'
import * as belief from '../limits/belief/learn.ts'
import { type Cost, charge } from '../limits/budget.ts'
import { isReady } from '../scheduling/fairness.ts'
import type { InFlight, Waiting } from '../state/calls.ts'
import { lookup, type ScopeContext } from '../state/context.ts'
import { decodeScope, encodeScope } from './codec.ts'
import type { EncodedPrincipal, EncodedScope } from './encoded.ts'

/** Where calls stand by the record. */
export interface Standings {
  readonly waiting: ReadonlyMap<string, Waiting>
  readonly inFlight: ReadonlyMap<string, InFlight>
  /** Calls that have ended since the record and this version first differed. */
  readonly ended: ReadonlyMap<string, Ending>
  readonly nextSeq: number
}

/**
 * `context` with its calls where `standings` has them, and all it has learned. Queues, heaps and counts are
 * built again from the calls. O(n log n) in the calls and in the endings that are remembered.
 */
export const withStandings = (context: ScopeContext, standings: Standings): ScopeContext => {
  const encoded = encodeScope(context)
  const isLive = (id: string): boolean => standings.waiting.has(id) || standings.inFlight.has(id)
  const waiting = inOrder(standings.waiting).map((row) => waitingRow(context, row, isLive))
  const inFlight = inOrder(standings.inFlight).map((row) => flightRow(context, row))
  return charged(
    context,
    standings,
    decodeScope({
      ...encoded,
      waiting,
      inFlight,
      nextSeq: Math.max(encoded.nextSeq, standings.nextSeq),
      ...principalsOf(encoded, waiting, inFlight),
      ...endingsOf(context, encoded, standings),
      qos: encoded.qos && { ...encoded.qos, exempt: encoded.qos.exempt.filter(isLive) },
      expected: encoded.expected.flatMap(([id, by]) => {
        const live = typeof by === 'number' ? [] : by.filter(isLive)
        return live.length === 0 ? [] : [[id, live] as const]
      }),
      // These name calls by their places: they are found anew.
      nested: [],
      bypass: null,
      phase: { ...encoded.phase, promise: null },
      favor: encoded.favor && { ...encoded.favor, seats: [] },
      wait: asksNoMore(encoded, standings),
    } satisfies EncodedScope | { readonly favor: undefined }),
  )
}

const inOrder = <A extends { readonly seq: number }>(rows: ReadonlyMap<string, A>): A[] =>
  [...rows.values()].sort((one, other) => one.seq - other.seq)

const waitingRow = (context: ScopeContext, row: Waiting, isLive: (id: string) => boolean): Waiting => {
  const { call, seq, unclaimedUntilMs, dispatchAtOnce } = row
  const own = lookup(context.waiting, call.id)
  const named = own?.waitsFor ?? (call.lane === 'primary' ? call.dependsOn : [])
  const waitsFor = named.filter(isLive)
  return { ...(own ?? row), call, seq, unclaimedUntilMs, dispatchAtOnce, waitsFor }
}

const flightRow = (context: ScopeContext, row: InFlight): InFlight => {
  const { call, seq, stage, preempted } = row
  return { ...(lookup(context.inFlight, call.id) ?? row), call, seq, stage, preempted }
}

/** A principal without a call leaves, and owes what it had; one whose call comes back is there again, last in the line. */
const principalsOf = (
  { principals, ring, debts = [], nextPlace = 0, virtualTokens = 0, at, heldMs }: EncodedScope,
  waiting: ReadonlyArray<Waiting>,
  inFlight: ReadonlyArray<InFlight>,
): Pick<EncodedScope, 'principals' | 'ring' | 'debts' | 'nextPlace'> => {
  const auxiliaries = [...waiting, ...inFlight].filter(({ call }) => call.lane === 'auxiliary')
  const live = new Set(auxiliaries.map(({ call }) => call.principal))
  const owed = new Map(debts)
  const known = new Map(principals)
  for (const [name, { tag = 0 }] of principals) {
    if (live.has(name)) continue
    known.delete(name)
    if (tag > virtualTokens) owed.set(name, tag)
  }
  for (const name of [...live].sort()) {
    if (known.has(name)) continue
    const tag = owed.get(name) ?? virtualTokens
    known.set(name, { tag, servedAt: at, heldFromMs: heldMs ?? at } satisfies EncodedPrincipal)
    owed.delete(name)
  }
  const lined = waiting.filter((row) => row.call.lane === 'auxiliary' && !row.urgent && isReady(row))
  const backlogged = new Set(lined.map(({ call }) => call.principal))
  const places = (ring as ReadonlyArray<readonly [string, number]>).filter(([name]) => backlogged.has(name))
  const placed = new Set(places.map(([name]) => name))
  const comes = [...backlogged].filter((name) => !placed.has(name))
  return {
    principals: [...known].sort(([one], [other]) => (one < other ? -1 : 1)),
    ring: [...places, ...comes.map((name, index) => [name, nextPlace + index] as const)],
    nextPlace: nextPlace + comes.length,
    debts: [...owed].sort(([, one], [, other]) => one - other),
  }
}

/** What is remembered of ended calls says what the record says of them, and nothing of calls that live. */
const endingsOf = (
  context: ScopeContext,
  { ended: [newer, older], unknown = [] }: EncodedScope,
  { waiting, inFlight, ended }: Standings,
): Pick<EncodedScope, 'ended' | 'unknown'> => {
  const isLive = (id: string): boolean => waiting.has(id) || inFlight.has(id)
  const gone = ([id]: EndingRow): boolean => !isLive(id)
  const remembered = new Map(unknown)
  for (const id of remembered.keys())
    if (isLive(id) || (ended.get(id) ?? 'unknown') !== 'unknown') remembered.delete(id)
  const told: Array<readonly [string, Ending]> = []
  for (const [id, ending] of ended) {
    if (ending === 'unknown') {
      if (!remembered.has(id)) remembered.set(id, context.at + context.policy.unknownRetentionMs)
    } else if (isNews(endingIn(context, id), ending)) told.push([id, ending])
  }
  return { ended: [[...newer.filter(gone), ...told], older.filter(gone)], unknown: [...remembered] }
}

/** A record that only says that a call had ended does not say how. */
const isNews = (known: Ending | undefined, recorded: Ending): boolean =>
  recorded === 'rejected' ? known === undefined || known === 'withdrawn' : known !== recorded

/** A probe that is not in flight asks nothing: the next call is one. */
const asksNoMore = ({ wait, at }: EncodedScope, { inFlight }: Standings): EncodedScope['wait'] =>
  wait === null || wait.probeId === null || inFlight.has(wait.probeId)
    ? wait
    : { ...wait, untilMs: at, probeId: null }

/** Calls that were sent by the record alone are charged; calls that were not sent after all are not. */
const charged = (before: ScopeContext, standings: Standings, context: ScopeContext): ScopeContext => {
  let { budget } = context
  let believed = context.belief
  const take = ({ taken, call, grantedAt }: InFlight, sign: 1 | -1): void => {
    const { requests, inputTokens, outputTokens } = taken
    const cost: Cost = {
      requests: sign * requests,
      inputTokens: sign * inputTokens,
      outputTokens: sign * outputTokens,
    }
    budget = charge(budget, cost, context.at)
    believed = belief.sent(believed, sign * call.inputTokens, grantedAt, context.at)
  }
  for (const [id, flight] of standings.inFlight) if (!HashMap.has(before.inFlight, id)) take(flight, 1)
  for (const flight of HashMap.values(before.inFlight)) {
    const { id } = flight.call
    if (standings.waiting.has(id) || standings.ended.get(id) === 'withdrawn') take(flight, -1)
  }
  return { ...context, budget, belief: believed }
}
