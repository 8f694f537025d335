/** A turn of an agent: from its beginning until its function ends, also with an error. */
import { randomUUID } from 'node:crypto'
import { InvalidInput } from '../../machines/index.ts'
import type { CallRequest } from './request.ts'
import type { ScopeRunner } from './scope-runner.ts'

export interface TurnOptions {
  /** 1 to 256 characters. Drawn when left out. */
  readonly id?: string
  /** `hold` (default): no auxiliary is admitted between its rounds, except its own; `yield`: the gate opens between rounds. */
  readonly betweenRounds?: 'hold' | 'yield'
}

/** A turn that has begun. */
export interface Turn {
  readonly id: string
  /** The request as one of this turn. */
  readonly call: (request?: CallRequest) => CallRequest
  /** Ends the turn; a second time does nothing. */
  readonly end: () => void
}

/** Throws `InvalidInput` for an id out of its range. */
export const beginTurn = (
  runner: ScopeRunner,
  { id = randomUUID(), betweenRounds = 'hold' }: TurnOptions = {},
): Turn => {
  if (id.length < 1 || id.length > 256) {
    throw new InvalidInput([{ field: 'id', expected: '1 to 256 characters', got: `${id.length} characters` }])
  }
  runner.tell({ type: 'turn.began', turnId: id, betweenRounds })
  let isOpen = true
  return {
    id,
    call: (request = {}) => ({ ...request, turnId: id }),
    end: () => {
      if (!isOpen) return
      isOpen = false
      runner.tell({ type: 'turn.ended', turnId: id })
    },
  }
}
