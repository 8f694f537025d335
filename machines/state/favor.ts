/** Turns that have begun, and the calls that they pass, as a scope keeps them. */
import { HashMap } from 'effect'
import { empty, type Queue } from '../collections/queue.ts'
import type { Place } from './calls.ts'

/** Of the primaries of one rank. */
export interface RankFavor {
  /** Waiting calls of begun turns: by principal, or under one name where turns are favored between principals. */
  readonly ofBegun: HashMap.HashMap<string, Queue<Place>>
  /** Calls whose seat another call of their principal took, by principal, in the order of their coming. */
  readonly aside: HashMap.HashMap<string, Queue<Place>>
  /** The same calls of all principals. */
  readonly allAside: Queue<Place>
  /** Seats in the rank's queue whose own calls went earlier: the number of the seat, and its principal. */
  readonly early: HashMap.HashMap<string, string>
}

export interface Favor {
  /** Turns that have had a permit. There are two generations, and the older one is forgotten as a whole. */
  readonly begun: HashMap.HashMap<string, true>
  readonly begunBefore: HashMap.HashMap<string, true>
  /** When the newer generation began, epoch milliseconds. */
  readonly begunSinceMs: number
  /** Ids of waiting calls by turn, for turns that have not begun. */
  readonly fresh: HashMap.HashMap<string, ReadonlyArray<string>>
  readonly ranks: ReadonlyArray<RankFavor>
}

export const noRankFavor: RankFavor = {
  ofBegun: HashMap.empty(),
  aside: HashMap.empty(),
  allAside: empty(),
  early: HashMap.empty(),
}

export const noRankFavors: ReadonlyArray<RankFavor> = [noRankFavor, noRankFavor, noRankFavor, noRankFavor]

export const noFavor: Favor = {
  begun: HashMap.empty(),
  begunBefore: HashMap.empty(),
  begunSinceMs: 0,
  fresh: HashMap.empty(),
  ranks: noRankFavors,
}
