/**
 * A host that talks to a person through one streaming turn with tool rounds, while the residences of
 * its agents compress and merge in the background, all on one key. The only seam is the adapter.
 */
import { withCall } from '../../src/clients/call-context.ts'
import { deferring, lanedAdapter, laneRefusalIn } from '../../src/clients/membrane-adapter.ts'
import { fingerprint, type LaneHost, type LaneScope, type PolicyInput } from '../../src/index.ts'
import {
  type Adapter,
  type HostError,
  Membrane,
  type MembraneRequest,
  type MembraneResponse,
  type YieldingStream,
} from './host-composition-membrane.ts'

export interface CompositionOptions {
  readonly key: string
  readonly policy?: PolicyInput
  readonly estimate?: (request: MembraneRequest) => number
  readonly sleep?: (ms: number) => Promise<void>
}

/** One piece of background work in a residence's queue. */
export interface Item {
  readonly id: string
  readonly prompt: string
}

/** The host: one key, one model, any number of agents. */
export class Composition {
  readonly scope: LaneScope
  readonly adapter: Adapter
  readonly membrane: Membrane
  /** Failures in a row by residence; at three the host would drop the newest exchange. */
  readonly poison = new Map<string, number>()
  readonly queues = new Map<string, Item[]>()

  constructor(lanes: LaneHost, adapter: Adapter, options: CompositionOptions) {
    const { key, policy = {}, estimate = ({ prompt }) => prompt.length, sleep } = options
    // The scope is named by a fingerprint; the key stays with the adapter.
    this.scope = lanes.scope({ provider: adapter.name, credential: fingerprint(key), model: 'opus' }, policy)
    this.adapter = lanedAdapter(adapter, { scope: () => this.scope, estimate })
    this.membrane = new Membrane(this.adapter, sleep)
  }

  /** A turn with a person. `hold`: background work waits until its end, also while tools run. */
  async turn(
    turnId: string,
    prompt: string,
    tools: (calls: ReadonlyArray<string>, stream: YieldingStream) => Promise<void>,
    { betweenRounds = 'hold' as 'hold' | 'yield', dependsOn = [] as ReadonlyArray<string> } = {},
  ): Promise<string> {
    this.scope.beginTurn(turnId, { betweenRounds })
    try {
      return await withCall({ lane: 'primary', turnId, principal: 'person', dependsOn }, async () => {
        const stream = this.membrane.streamYielding({ model: 'opus', prompt })
        let text = ''
        for await (const event of stream) {
          if (event.type === 'tokens') text += event.text
          if (event.type === 'tool-calls') {
            await tools(event.calls, stream)
            stream.provideToolResults()
          }
          if (event.type === 'error') throw event.error
        }
        return text
      })
    } finally {
      this.scope.endTurn(turnId)
    }
  }

  /**
   * Background work of a residence. Work that could not go stays in its queue and does not count as a
   * failure.
   */
  async work(residence: string, item: Item, signal?: AbortSignal): Promise<MembraneResponse | null> {
    const queue = this.queues.get(residence) ?? []
    this.queues.set(residence, queue)
    if (!queue.includes(item)) queue.push(item)
    const options = signal === undefined ? {} : { signal }
    try {
      const response = await deferring(() =>
        withCall({ lane: 'auxiliary', principal: residence }, () =>
          this.membrane.complete({ model: 'opus', prompt: item.prompt }, options),
        ),
      )
      queue.splice(queue.indexOf(item), 1)
      this.poison.set(residence, 0)
      return response
    } catch (error) {
      const { type, providerAdmission } = error as HostError & { readonly providerAdmission?: string }
      if (providerAdmission === 'deferred') return null
      const failures = type === 'invalid_request' ? (this.poison.get(residence) ?? 0) + 1 : 0
      this.poison.set(residence, failures)
      throw error
    }
  }
}

export { laneRefusalIn }
