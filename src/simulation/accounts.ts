/** The witness's own accounts: one per live call, with the sums that the invariants need. */
export type Standing = 'waiting' | 'in flight' | 'settling' | 'ended'

export interface Account {
  readonly id: string
  readonly lane: 'primary' | 'auxiliary'
  readonly principal: string
  readonly turnId: string | null
  /** Order of submission. */
  readonly order: number
  readonly standing: Standing
  /** The call has no owner since a restart, or since its holder gave it back: it stands in no queue. */
  readonly orphan: boolean
  /** The call passed, or may pass, its principal's queue. */
  readonly promoted: boolean
  /** The call borrows its parent's place. */
  readonly borrowed: boolean
  readonly sent: boolean
  /** The owner withdrew the call: the id may be used again. */
  readonly withdrawn: boolean
  readonly grants: number
  readonly returns: number
}

export interface Sums {
  waiting: number
  waitingPrimaries: number
  inFlight: number
  /** Calls in flight on places of their own. */
  places: number
  /** Auxiliaries in flight that were not let through as exceptions. */
  auxiliaries: number
}

const queued = (account: Account): boolean =>
  account.lane === 'auxiliary' && account.standing === 'waiting' && !account.promoted && !account.orphan

export class Accounts {
  readonly #live = new Map<string, Account>()
  readonly #ended = new Set<string>()
  /** Per principal, the orders of its queued auxiliaries, ascending. */
  readonly #queues = new Map<string, number[]>()
  readonly sums: Sums = { waiting: 0, waitingPrimaries: 0, inFlight: 0, places: 0, auxiliaries: 0 }
  #order = 0

  get live(): ReadonlyMap<string, Account> {
    return this.#live
  }

  hasEnded(id: string): boolean {
    return this.#ended.has(id)
  }

  open({ id, lane, principal, turnId }: Pick<Account, 'id' | 'lane' | 'principal' | 'turnId'>): void {
    const blank = {
      standing: 'waiting',
      orphan: false,
      promoted: false,
      borrowed: false,
      sent: false,
      withdrawn: false,
    } as const
    this.#put({ id, lane, principal, turnId, order: this.#order++, ...blank, grants: 0, returns: 0 })
  }

  change(account: Account, changes: Partial<Account>): Account {
    this.#count(account, -1)
    const next = { ...account, ...changes }
    this.#put(next)
    return next
  }

  end(account: Account): void {
    this.#count(account, -1)
    this.#live.delete(account.id)
    if (!account.withdrawn) this.#ended.add(account.id)
  }

  /** Whether no call of the same principal stands before it in the queue. */
  isFirst({ principal, order }: Account): boolean {
    const first = this.#queues.get(principal)?.[0]
    return first === undefined || first >= order
  }

  #put(account: Account): void {
    this.#live.set(account.id, account)
    this.#count(account, 1)
  }

  #count(account: Account, sign: 1 | -1): void {
    const { sums } = this
    const flying = account.standing === 'in flight'
    if (account.standing === 'waiting') {
      sums.waiting += sign
      if (account.lane === 'primary') sums.waitingPrimaries += sign
    }
    if (flying) sums.inFlight += sign
    if (flying && !account.borrowed) sums.places += sign
    if (flying && account.lane === 'auxiliary' && !account.promoted) sums.auxiliaries += sign
    if (queued(account)) this.#queue(account, sign)
  }

  #queue({ principal, order }: Account, sign: 1 | -1): void {
    const queue = this.#queues.get(principal) ?? []
    this.#queues.set(principal, queue)
    let low = 0
    let high = queue.length
    while (low < high) {
      const middle = (low + high) >> 1
      if (queue[middle]! < order) low = middle + 1
      else high = middle
    }
    if (sign === 1) queue.splice(low, 0, order)
    else queue.splice(low, 1)
  }
}
