/** A host on a clock that the test moves, with dispatches that end when the test says so. */
import {
  type CallRequest,
  type LaneHost,
  type LaneScope,
  ManualClock,
  openHost,
  type Permit,
  type PolicyInput,
} from '../../src/index.ts'
import type { Journal } from '../../src/journal/journal.ts'

/** Lets everything that is ready happen: promise callbacks and the journal's acknowledgements. */
export const settle = async (turns = 5): Promise<void> => {
  for (let turn = 0; turn < turns; turn += 1) await new Promise<void>((resolve) => setImmediate(resolve))
}

export interface Dispatch {
  readonly id: string
  readonly permit: Permit
  readonly finish: (result?: unknown) => Promise<void>
  readonly fail: (error: unknown) => Promise<void>
}

/** A provider that never answers by itself; the order of its dispatches is the judge. */
export class Bench {
  readonly clock: ManualClock
  readonly host: LaneHost
  readonly scope: LaneScope
  /** Every dispatch in order, by call id. */
  readonly log: string[] = []
  readonly #running = new Map<string, Dispatch>()
  readonly outcomes = new Map<string, unknown>()

  /** Tests of the contract's rules: a policy that names no preset is the contract's. */
  private constructor(clock: ManualClock, host: LaneHost, policy: PolicyInput) {
    this.clock = clock
    this.host = host
    this.scope = host.scope(
      { provider: 'anthropic', credential: 'k1', model: 'm' },
      { preset: 'contract', ...policy },
    )
  }

  static async open(
    policy: PolicyInput = {},
    journal: string | Journal = ':memory:',
    at = 1_000_000,
  ): Promise<Bench> {
    const clock = new ManualClock(at)
    return new Bench(clock, await openHost({ journal, clock }), policy)
  }

  /** Starts a call; its outcome ends up in `outcomes`. */
  async start(id: string, request: CallRequest, scope: LaneScope = this.scope): Promise<void> {
    void scope
      .run({ id, ...request }, (permit) => this.#dispatch(id, permit))
      .then(
        (result) => this.outcomes.set(id, result),
        (error: unknown) => this.outcomes.set(id, error),
      )
    await settle()
  }

  auxiliary(id: string, request: CallRequest = {}): Promise<void> {
    return this.start(id, { lane: 'auxiliary', inputTokens: 60_000, ...request })
  }

  primary(id: string, request: CallRequest = {}): Promise<void> {
    return this.start(id, { lane: 'primary', inputTokens: 181_000, ...request })
  }

  get running(): ReadonlyArray<string> {
    return [...this.#running.keys()]
  }

  dispatch(id: string): Dispatch {
    const dispatch = this.#running.get(id)
    if (dispatch === undefined)
      throw new Error(`${id} is not running; ${this.running.join(', ') || 'nothing'} is`)
    return dispatch
  }

  async finish(
    id: string,
    result: unknown = { usage: { input_tokens: 1, output_tokens: 1 } },
  ): Promise<void> {
    await this.dispatch(id).finish(result)
  }

  async fail(id: string, error: unknown): Promise<void> {
    await this.dispatch(id).fail(error)
  }

  async pass(ms: number): Promise<void> {
    const endMs = this.clock.now() + ms
    // Each due timer takes its full effect before the next timer fires.
    for (let next = this.clock.nextAt(); next !== null && next <= endMs; next = this.clock.nextAt()) {
      this.clock.step()
      await settle(3)
    }
    this.clock.advance(endMs - this.clock.now())
    await settle()
  }

  #dispatch(id: string, permit: Permit): Promise<unknown> {
    this.log.push(id)
    return new Promise((resolve, reject) => {
      const end = (conclude: () => void) => async () => {
        this.#running.delete(id)
        conclude()
        await settle()
      }
      this.#running.set(id, {
        id,
        permit,
        finish: (result) => end(() => resolve(result))(),
        fail: (error) => end(() => reject(error))(),
      })
      permit.signal.addEventListener('abort', () => {
        this.#running.delete(id)
        reject(permit.signal.reason)
      })
    })
  }
}

/** The error that the official Anthropic SDK throws for an acceleration limit. */
export const accelerationError = (): Error & { status: number } =>
  Object.assign(new Error('429'), {
    status: 429,
    headers: {},
    error: {
      type: 'error',
      error: {
        type: 'rate_limit_error',
        message:
          "This request would exceed your organization's maximum usage increase rate for input tokens per minute.",
      },
    },
  })
