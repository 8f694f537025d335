/** A server that sheds, asked by calls of every class. */
import {
  type Call,
  laneOfClass,
  type PolicyInput,
  type PriorityClass,
  parsePolicy,
} from '../../../machines/index.ts'
import { limitsOf } from '../../../machines/limits/shed-limits.ts'
import { poolPolicy } from '../../../machines/model/presets.ts'
import { blankCall, Story } from '../story.ts'

export const ingest = 'background_ingestion'
/** Lowest first. */
export const classes = [ingest, 'hydration', 'orchestration', 'interactive'] as const

export const server = (capacity: number, qos: PolicyInput['qos'] = {}, over: PolicyInput = {}): Story =>
  new Story({ ...poolPolicy, capacity, reserve: 0, qos: qos as never, ...over })

/** Asks; answers why it was shed, or null when it was let in. */
export const ask = (
  story: Story,
  id: string,
  priorityClass: PriorityClass,
  principal = id,
  over: Partial<Call> = {},
): string | null => {
  story.submit({ id, lane: laneOfClass(priorityClass), priorityClass, principal, ...over })
  const rejected = story.context.decisions.find(
    ({ callId, verdict }) => callId === id && verdict === 'reject',
  )
  return rejected?.reason ?? null
}

export const limitsFor = (capacity: number) => limitsOf(parsePolicy({ qos: {} }).qos!, capacity)

export const callOf = (priorityClass: PriorityClass, principal: string, id = principal): Call => ({
  ...blankCall,
  id,
  priorityClass,
  principal,
})
