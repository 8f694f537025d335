/** What the holder of a token may say of a call: nobody promotes itself. */
import {
  type Lane,
  laneOfClass,
  type PriorityClass,
  priorityClasses,
  priorityRanks,
} from '../../../machines/index.ts'
import type { FieldProblem } from '../problem/field-problem.ts'
import type { Classified } from '../routing/classify.ts'
import type { CallHeaders } from './call-headers.ts'
import type { Token } from './tokens.ts'

const defaultClass: PriorityClass = 'orchestration'

/** The headers as they count for this holder; or what it may not say. */
export const within = (
  said: CallHeaders,
  token: Token,
  classified: Classified | null = null,
): CallHeaders | ReadonlyArray<FieldProblem> => {
  const problems: Array<FieldProblem> = []
  const refuse = (field: string, expected: string, got: string): void => {
    problems.push({ field, expected: `${expected}, as token ${token.id} allows`, got })
  }
  if (said.principal !== null && said.principal !== token.principal)
    refuse('x-rightofway-principal', token.principal, said.principal)
  const classes = token.classes ?? priorityClasses
  if (said.priorityClass !== null && !classes.includes(said.priorityClass))
    refuse('x-resource-priority', `one of ${classes.join(', ')}`, said.priorityClass)
  if (said.lane !== null && token.lanes !== null && !token.lanes.includes(said.lane))
    refuse('x-rightofway-lane', `one of ${token.lanes.join(', ')}`, said.lane)
  if (problems.length > 0) return problems
  const mayBe = classified !== null && isWithin(classified, classes, token.lanes)
  const called = withClassified(said, mayBe ? classified : null)
  const priorityClass = called.priorityClass ?? untagged(classes)
  return {
    ...called,
    principal: token.principal,
    priorityClass,
    lane: laneWithin(called.lane, priorityClass, token),
  }
}

/** A row says no more for a client than its token lets it say: of one that says too much nothing counts. */
const isWithin = (
  { priorityClass, lane }: Classified,
  classes: ReadonlyArray<PriorityClass>,
  lanes: Token['lanes'],
): boolean =>
  (priorityClass === null || classes.includes(priorityClass)) &&
  (lanes === null || lanes.includes(lane ?? laneOfClass(priorityClass ?? defaultClass)))

/** What the client said itself stands above what a row says of it. */
export const withClassified = (said: CallHeaders, classified: Classified | null): CallHeaders => {
  if (classified === null) return said
  const { priorityClass, lane, principal, turnId, id } = classified
  const isRanked = said.priorityClass !== null || said.lane !== null
  return {
    ...said,
    id: said.id ?? id,
    principal: said.principal ?? principal,
    turnId: said.turnId ?? turnId,
    priorityClass: isRanked ? said.priorityClass : priorityClass,
    lane: isRanked ? said.lane : lane,
  }
}

/** An untagged call is of the usual class, or of the least urgent that it may have. */
const untagged = (classes: ReadonlyArray<PriorityClass>): PriorityClass | null => {
  if (classes.includes(defaultClass)) return null
  return [...classes].sort((one, other) => priorityRanks[other] - priorityRanks[one])[0] ?? null
}

const laneWithin = (
  stated: Lane | null,
  priorityClass: PriorityClass | null,
  { lanes }: Token,
): Lane | null => {
  if (stated !== null || lanes === null) return stated
  const usual = laneOfClass(priorityClass ?? defaultClass)
  return lanes.includes(usual) ? null : (lanes[0] ?? null)
}
