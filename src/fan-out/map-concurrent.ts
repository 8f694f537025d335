/** Fan-out through a scope: many calls, few at a time, each with a permit of its own. */
import { setImmediate } from 'node:timers/promises'
import { InvalidInput, type Lane } from '../../machines/index.ts'
import { type Ambient, currentAmbient, withAmbient } from '../carrier/ambient.ts'
import type { LaneScope } from '../host/host.ts'
import type { Permit } from '../host/permit.ts'
import type { CallRequest } from '../host/request.ts'
import { type Breaker, underBreaker } from './breaker.ts'
import { type Source, sourceOf } from './source.ts'

const maxWidth = 65_536

export interface MapOptions<T> {
  readonly scope: Pick<LaneScope, 'run'>
  /** Derived from the priority class when left out. */
  readonly lane?: Lane
  /** The most items at work at once, including those that wait for permits: 1 to 65,536. */
  readonly width: number
  /** Returns how each item ended instead of failing with the first failure. */
  readonly collect?: boolean
  /** Asked before a permit is: while it is open, an item fails with `BreakerOpen` and takes no place in the scope. */
  readonly breaker?: Breaker
  /** Ends the whole run: waiting calls are withdrawn, running ones aborted. */
  readonly signal?: AbortSignal
  /** Describes an item's call. The options' `lane` and the present class apply where it leaves them out. */
  readonly call?: (item: T, index: number) => CallRequest
}

/**
 * `permit.signal` aborts when `fn` should stop. As in `LaneScope.run`, `fn` runs again after a preemption or
 * a refusal.
 */
export type MapFunction<T, R> = (item: T, permit: Permit, index: number) => R | PromiseLike<R>

const checkWidth = (width: number): void => {
  if (Number.isInteger(width) && width >= 1 && width <= maxWidth) return
  throw new InvalidInput([
    { field: 'mapConcurrent.width', expected: `an integer in [1, ${maxWidth}]`, got: String(width) },
  ])
}

/** One run of `mapConcurrent`: its workers share the source, the results and the reason to stop. */
class FanOut<T, R> {
  readonly #fn: MapFunction<T, R>
  readonly #options: MapOptions<T>
  /** Captured once, so that an iterable or a callback that changes the class changes nothing here. */
  readonly #ambient: Ambient = currentAmbient()
  readonly #source: Source<T>
  readonly #results: Array<R | PromiseSettledResult<R>> = []
  /** One controller per running item: a shared signal would gather a listener per item. */
  readonly #running = new Set<AbortController>()
  #failing = false
  #stop: { readonly reason: unknown } | null = null
  #sourceStopped: Promise<void> | null = null

  constructor(items: Iterable<T> | AsyncIterable<T>, fn: MapFunction<T, R>, options: MapOptions<T>) {
    this.#fn = fn
    this.#options = options
    this.#source = sourceOf(items)
  }

  async run(): Promise<Array<R | PromiseSettledResult<R>>> {
    const { signal, width } = this.#options
    const abort = () => this.#end(signal?.reason)
    if (signal?.aborted) abort()
    signal?.addEventListener('abort', abort, { once: true })
    const workers: Array<Promise<void>> = []
    for (let count = 0; count < width && this.#stop === null; count += 1) workers.push(this.#work())
    await Promise.all(workers)
    signal?.removeEventListener('abort', abort)
    if (this.#stop === null) return this.#results
    await this.#sourceStopped
    throw this.#stop.reason
  }

  /** Takes one item after the other until there is none, or until a reason to stop. Never rejects. */
  async #work(): Promise<void> {
    try {
      while (this.#stop === null) {
        const next = await this.#source.next()
        if (next === null || this.#stop !== null) return
        await this.#one(next.item, next.index)
      }
    } catch (error) {
      this.#end(error)
    }
  }

  async #one(item: T, index: number): Promise<void> {
    const controller = new AbortController()
    this.#running.add(controller)
    try {
      const value = await withAmbient(this.#ambient, () => this.#call(item, index, controller.signal))
      this.#results[index] = this.#options.collect === true ? { status: 'fulfilled', value } : value
    } catch (reason) {
      if (this.#options.collect === true) this.#results[index] = { status: 'rejected', reason }
      else this.#end(reason)
    } finally {
      this.#running.delete(controller)
    }
  }

  #call(item: T, index: number, stop: AbortSignal): Promise<R> {
    const { scope, lane, call, breaker } = this.#options
    const stated = call?.(item, index) ?? {}
    const signal = stated.signal === undefined ? stop : AbortSignal.any([stop, stated.signal])
    const request = { ...(lane === undefined ? {} : { lane }), ...stated, signal }
    return underBreaker(breaker, index, () =>
      scope.run(request, (permit) => this.#dispatch(item, permit, index)),
    )
  }

  async #dispatch(item: T, permit: Permit, index: number): Promise<R> {
    // A sibling's failure frees its permit before this worker learns of the failure.
    if (this.#failing) {
      await setImmediate()
      permit.signal.throwIfAborted()
    }
    try {
      return await this.#fn(item, permit, index)
    } catch (error) {
      if (this.#options.collect !== true) this.#suspect()
      throw error
    }
  }

  /**
   * Waits one turn of the event loop: by then it is known whether this failure ends the run or the call runs
   * again.
   */
  #suspect(): void {
    this.#failing = true
    void setImmediate().then(() => {
      this.#failing = false
    })
  }

  #end(reason: unknown): void {
    if (this.#stop !== null) return
    this.#stop = { reason }
    this.#sourceStopped = this.#source.stop()
    for (const controller of this.#running) controller.abort(reason)
  }
}

/**
 * Runs `fn` for every item, `width` at a time, each in a call of `scope`; answers the results in
 * the order of the items. A place in the width is taken before a permit is asked for, so no permit
 * idles behind it. The priority class is the one around this call. The first failure withdraws the
 * siblings that wait, aborts those that run, and rejects once they have ended. May be nested, at
 * any width and capacity: a call made inside another borrows its place.
 */
export function mapConcurrent<T, R>(
  items: Iterable<T> | AsyncIterable<T>,
  fn: MapFunction<T, R>,
  options: MapOptions<T> & { readonly collect: true },
): Promise<Array<PromiseSettledResult<R>>>
export function mapConcurrent<T, R>(
  items: Iterable<T> | AsyncIterable<T>,
  fn: MapFunction<T, R>,
  options: MapOptions<T> & { readonly collect?: false },
): Promise<Array<R>>
export async function mapConcurrent<T, R>(
  items: Iterable<T> | AsyncIterable<T>,
  fn: MapFunction<T, R>,
  options: MapOptions<T>,
): Promise<Array<R | PromiseSettledResult<R>>> {
  checkWidth(options.width)
  return new FanOut(items, fn, options).run()
}
