/**
 * The page's data, in one place outside React. The feed and the history write it, and views read it once per
 * drawn frame, and at once where the reader moves. The page's place is its link and is stored nowhere else.
 */

import { type ScopeStatus, statusAt } from '../../../../src/host/status.ts'
import type { EntryFrame, Frame, ScopeRow } from '../../../protocol.ts'
import { type ActorsState, foldActors, noActors } from '../model/actors.ts'
import { HostTime } from '../model/host-time.ts'
import { formatPlace, type Place, parsePlace } from '../model/place.ts'
import type { Track } from '../model/track.ts'
import { askEntries, askHistory, askScopes, openFeed } from './api.ts'

/** Entries of history that a page loads first. */
const windowEntries = 20_000
/** The most entries that a following page keeps. Above that, it loads the newest again. */
const maxEntries = 250_000
const pageEntries = 5_000
const maxPending = 20_000
/** Longest time that the replica blocks drawing. */
const sliceMs = 12
/** Interval for drawing ages again. */
const tickMs = 1_000

export type Connection = 'connecting' | 'live' | 'recorded' | 'lost'

export class Inspection {
  rows: ReadonlyArray<ScopeRow> = []
  /** Rows at the shown moment; null while the page follows. */
  pastRows: ReadonlyArray<ScopeRow> | null = null
  connection: Connection = 'connecting'
  mayAct = false
  /** Frames that this page lost because it was too slow. */
  dropped = 0
  track: Track | null = null
  isLoading = false
  problem: string | null = null
  actors: ActorsState = noActors
  place: Place

  readonly #listeners = new Set<() => void>()
  #version = 0
  #isScheduled = false
  #syncing: Track | null = null
  #pending: EntryFrame[] = []
  #missed = false
  /** Counts loads: only the newest one takes effect. */
  #loads = 0
  #pastAt: number | null = null
  #wantsFilter = false
  /** The run of the host whose data this page shows. */
  #host: string | null = null
  readonly #time = new HostTime(() => performance.now())

  constructor() {
    this.place = parsePlace(location.hash)
    addEventListener('hashchange', () => this.#arrive(parsePlace(location.hash)))
  }

  readonly subscribe = (listener: () => void): (() => void) => {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  readonly version = (): number => this.#version

  start(): void {
    // A person looks at the page when no events come, so ages must grow without events.
    setInterval(() => this.#time.isRunning && this.place.position === null && this.#changed(), tickMs)
    openFeed({
      frame: (frame) => this.#take(frame),
      lost: () => {
        this.connection = 'lost'
        // Without the feed, the shown data does not become older by itself.
        this.#time.stop()
        this.#changed()
      },
    })
  }

  /** Changes the place. A move in time adds no entry to the browser's history. */
  go(to: Partial<Place>): void {
    const next = { ...this.place, ...to }
    const isScrub = next.view === this.place.view && next.scope === this.place.scope
    const hash = formatPlace(next)
    if (isScrub) history.replaceState(null, '', hash)
    else history.pushState(null, '', hash)
    this.#arrive(next)
  }

  /** Index in the track of the shown entry; the newest while the page follows. */
  get index(): number {
    const { track, place } = this
    if (track === null) return -1
    return place.position === null ? track.entries.length - 1 : track.indexAt(place.position)
  }

  /** The shown moment, epoch milliseconds: an event's time, or the host's clock while the page follows. */
  get nowMs(): number {
    const { track } = this
    if (this.place.position === null) return Math.max(this.#time.nowMs(), track?.lastAt ?? 0)
    return track?.entries[this.index]?.event.at ?? track?.firstAt ?? this.#time.nowMs()
  }

  /** How far the host's clock is ahead of this browser's, milliseconds. */
  get skewMs(): number {
    return this.#time.isRunning ? this.#time.nowMs() - Date.now() : 0
  }

  /** Every scope's status at the shown moment. */
  get statuses(): ReadonlyArray<ScopeStatus> {
    const { nowMs } = this
    return (this.pastRows ?? this.rows).map(({ facts }) => statusAt(facts, nowMs))
  }

  /** A link names a scope of which the host, as far as this page has heard, knows nothing. */
  get isUnknownScope(): boolean {
    const { scope } = this.place
    const { track } = this
    if (scope === null || this.isLoading || track === null || track.scope !== scope) return false
    return track.isEmpty && !this.rows.some(({ facts }) => facts.scope === scope)
  }

  /** Like `nowMs`; null when there are no entries. */
  get moment(): number | null {
    const { track } = this
    if (track === null || track.firstAt === null) return null
    return this.nowMs
  }

  /** Time of the shown event; null when there are no entries. */
  get eventAt(): number | null {
    const { track } = this
    return track?.entries[this.index]?.event.at ?? track?.firstAt ?? null
  }

  /** Moves by `steps` entries, forwards or backwards. */
  step(steps: number): void {
    const { track } = this
    if (track === null || track.entries.length === 0) return
    const index = Math.max(0, Math.min(track.entries.length - 1, this.index + steps))
    this.go({ position: track.entries[index]?.position ?? null })
  }

  pause(): void {
    const last = this.track?.lastPosition
    if (this.place.position === null && last !== undefined) this.go({ position: last })
  }

  follow(): void {
    this.go({ position: null })
  }

  /** Opens the decisions with the cursor in their filter, once that view is there. */
  requestFilter(): void {
    this.#wantsFilter = true
    this.go({ view: 'decisions' })
  }

  /** Whether the filter was requested since it was last asked. */
  takeFilterRequest(): boolean {
    const wanted = this.#wantsFilter
    this.#wantsFilter = false
    return wanted
  }

  /** Loads again, with four times as much history. */
  async loadEarlier(): Promise<void> {
    const { track } = this
    if (track !== null) await this.#load(track.scope, track.entries.length * 4)
  }

  #arrive(place: Place): void {
    const isOther = place.scope !== this.place.scope
    this.place = place
    if (isOther) this.#choose()
    this.#lookBack()
    // A field shows what React drew last: drawn at the next frame, it would lose what is typed before.
    this.#draw()
  }

  #take(frame: Frame): void {
    switch (frame.kind) {
      case 'hello':
        this.connection = frame.live ? 'live' : 'recorded'
        this.mayAct = frame.actions
        if (this.#host !== null && this.#host !== frame.host) this.#forget()
        this.#host = frame.host
        this.#catchUp()
        break
      case 'entries':
        this.#enter(frame.entries)
        break
      case 'scopes': {
        const rows = new Map(this.rows.map((row) => [row.facts.scope, row]))
        for (const row of frame.rows) rows.set(row.facts.scope, row)
        this.rows = [...rows.values()].sort((one, other) => (one.facts.scope < other.facts.scope ? -1 : 1))
        if (this.track === null && !this.isLoading) this.#choose()
        break
      }
      case 'clock':
        if (this.connection === 'live') this.#time.set(frame.nowMs, true)
        break
      case 'actors':
        this.actors = foldActors(this.actors, frame.actors)
        break
      case 'dropped':
        this.dropped += frame.count
        this.#catchUp()
        break
    }
    this.#changed()
  }

  #enter(entries: ReadonlyArray<EntryFrame>): void {
    if (this.connection === 'recorded') void this.#askRows()
    const { track } = this
    if (this.#syncing !== null) {
      if (this.#pending.length < maxPending) this.#pending.push(...entries)
      else this.#missed = true
    }
    if (track === null || this.#syncing === track) return
    track.add(entries)
    if (track.entries.length > maxEntries && this.place.position === null)
      void this.#load(track.scope, windowEntries)
  }

  /** Another host answers now: its journal may be another one, so nothing of the last one is shown. */
  #forget(): void {
    this.track = null
    this.rows = []
    this.pastRows = null
    this.actors = noActors
    this.dropped = 0
    this.#syncing = null
    this.#pastAt = null
    // A load that is under way is of the last host.
    this.#loads += 1
    this.isLoading = false
    if (this.place.position !== null) this.go({ position: null })
  }

  /**
   * Asks for everything that the feed did not bring: at the start, and after a gap. It asks at once, so that
   * later frames of the feed wait until the gap is filled.
   */
  #catchUp(): void {
    this.#missed = true
    if (this.track !== null && this.#syncing === null) void this.#sync(this.track)
    void this.#askRows().then(() => {
      if (this.track === null) this.#choose()
    })
  }

  async #askRows(): Promise<void> {
    try {
      const { scopes, now, live } = await askScopes(null)
      this.rows = scopes
      this.#time.set(now, live)
      this.problem = null
    } catch (error) {
      this.problem = messageOf(error)
    }
    this.#changed()
  }

  #choose(): void {
    const scope = this.place.scope ?? this.rows[0]?.facts.scope ?? null
    if (scope !== null && this.track?.scope !== scope) void this.#load(scope, windowEntries)
  }

  async #load(scope: string, entries: number): Promise<void> {
    this.isLoading = true
    this.#loads += 1
    const load = this.#loads
    this.#changed()
    try {
      let history = await askHistory(scope, entries, null)
      const { position } = this.place
      // A link may lead to a position before the first loaded entry.
      if (position !== null && position < history.base.position)
        history = await askHistory(scope, windowEntries, position)
      // The core is the larger half of the page; the frame around it appears first.
      const { Track } = await import('../model/track.ts')
      const track = new Track(history)
      await this.#sync(track)
      if (load !== this.#loads) return
      this.track = track
      this.problem = null
      // The link of this page leads to what it shows, also where the scope was chosen for it.
      if (this.place.scope === null) {
        this.place = { ...this.place, scope }
        globalThis.history.replaceState(null, '', formatPlace(this.place))
      }
      this.#pastAt = null
      this.#lookBack()
    } catch (error) {
      if (load !== this.#loads) return
      this.problem = messageOf(error)
    }
    this.isLoading = false
    this.#changed()
  }

  async #sync(track: Track): Promise<void> {
    this.#syncing = track
    try {
      do {
        this.#missed = false
        this.#pending = []
        for (let done = false; !done && this.#syncing === track; ) {
          const answer = await askEntries(track.scope, track.lastPosition, pageEntries)
          track.add(answer.entries)
          done = answer.done
          this.#changed()
        }
        if (!this.#missed && this.#syncing === track) track.add(this.#pending)
      } while (this.#missed && this.#syncing === track)
    } catch (error) {
      this.problem = messageOf(error)
    }
    if (this.#syncing === track) this.#syncing = null
  }

  /** Loads the other scopes at the shown moment. */
  #lookBack(): void {
    const at = this.place.position === null ? null : this.eventAt
    if (at === this.#pastAt) return
    this.#pastAt = at
    if (at === null) {
      this.pastRows = null
      return
    }
    setTimeout(() => {
      if (this.#pastAt !== at) return
      askScopes(at).then(
        ({ scopes }) => {
          if (this.#pastAt === at) this.pastRows = scopes
          this.#changed()
        },
        () => {},
      )
    }, 150)
  }

  #changed(): void {
    if (this.#isScheduled) return
    this.#isScheduled = true
    requestAnimationFrame(() => {
      this.#isScheduled = false
      this.#draw()
    })
  }

  #draw(): void {
    const { track } = this
    if (track !== null) {
      const until = performance.now() + sliceMs
      if (!track.replay(() => performance.now() < until)) this.#changed()
    }
    this.#version += 1
    for (const listener of this.#listeners) listener()
  }
}

const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error))
