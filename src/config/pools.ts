/** Policies of scopes that are no provider: worker pools, read lanes, and a gate over one model, with the Edict's floors. */
import { InvalidInput, type Policy, type PolicyInput, parsePolicy, poolPolicy } from '../../machines/index.ts'

/** Calls that cost no tokens take turns one by one: else a principal would keep its turn for a whole quantum of them. */
const turnByTurn: PolicyInput = { quantumTokens: 1 }

const count = (field: string, value: number, least: number): number => {
  if (Number.isInteger(value) && value >= least && value <= 65_536) return value
  throw new InvalidInput([{ field, expected: `an integer in [${least}, 65536]`, got: String(value) }])
}

export interface WorkerPool {
  /** 1 to 65,536. */
  readonly workers: number
  /** Workers that background must leave free; at least one is kept whatever this says. Default 0. */
  readonly reserved?: number
}

/** Workers that only primaries may take: at least one, but never the only one of a pool, which would be wedged. */
export const interactiveFloor = ({ workers, reserved = 0 }: WorkerPool): number =>
  Math.min(Math.max(1, reserved), Math.max(0, workers - 1))

export interface LaneCap extends WorkerPool {
  /** Lanes that wait for their first worker. Default 0. */
  readonly otherPendingLanes?: number
  /** Workers that each of them may count on. Default 1. */
  readonly perLaneMin?: number
  /** Workers that the lane gets even when others wait, as far as the pool has them. Default 1. */
  readonly atLeast?: number
  /** Chosen by the operator: wins. */
  readonly explicit?: number
}

/** Workers that one bulky background lane may hold. Never 0. */
export const bulkLaneCap = (cap: LaneCap): number => {
  const { workers, reserved = 0, otherPendingLanes = 0, perLaneMin = 1, atLeast = 1, explicit } = cap
  if (explicit !== undefined && explicit > 0) return explicit
  const left = workers - reserved - otherPendingLanes * perLaneMin
  return Math.max(1, left, Math.min(atLeast, Math.max(1, workers - reserved)))
}

/** Workers that a lane may hold which nobody waits for. Never 0. */
export const bestEffortLaneCap = (perLaneMin: number): number => Math.max(1, perLaneMin)

/** Workers for generating memories: what acquiring them, by default a quarter of the pool, leaves. Never 0. */
export const generationWorkers = (workers: number, acquisitionFloor = Math.floor(workers / 4)): number =>
  Math.max(1, workers - Math.max(1, acquisitionFloor))

/**
 * A pool of workers: `host.scope('worker-pool', workerPoolPolicy({ workers: 8 }))`, one call per
 * task, its lane as the principal. `laneCap` bounds the workers of every background lane alike.
 * Throws `InvalidInput`.
 */
export const workerPoolPolicy = ({
  laneCap,
  ...pool
}: WorkerPool & { readonly laneCap?: number }): Policy => {
  const capacity = count('workerPool.workers', pool.workers, 1)
  count('workerPool.reserved', pool.reserved ?? 0, 0)
  const reserve = interactiveFloor(pool)
  const principalQuota = laneCap === undefined ? null : count('workerPool.laneCap', laneCap, 1)
  return parsePolicy({ ...turnByTurn, capacity, reserve, principalQuota }, poolPolicy)
}

/** A read lane of an engine: at least one slot stays free of background, whatever storm of it comes. Throws `InvalidInput`. */
export const engineReadPolicy = ({
  slots,
  reserved = 1,
}: {
  readonly slots: number
  readonly reserved?: number
}): Policy => {
  const capacity = count('engineRead.slots', slots, 1)
  count('engineRead.reserved', reserved, 0)
  return parsePolicy(
    { ...turnByTurn, capacity, reserve: interactiveFloor({ workers: slots, reserved }) },
    poolPolicy,
  )
}

/** Calls at once that a model server bears when nobody says. */
export const defaultServerCapacity = 32

export interface ModelGate {
  /** Chosen by the operator; wins over `declared`. Below 1 counts as 1, fractions are cut off. */
  readonly capacity?: number
  /** What the model's description says. */
  readonly declared?: number
  /** Clamped to [0, capacity-1]; sized from the capacity when left out. */
  readonly reserve?: number
  /** How long background is held to half its places after a primary was admitted. Default 30 s. */
  readonly squeezeMs?: number
}

/** A gate over one shared model server, as the Edict describes it: primaries never wait for background in flight. */
export const modelGatePolicy = ({
  capacity,
  declared,
  reserve,
  squeezeMs = 30_000,
}: ModelGate = {}): Policy => {
  const places = Math.max(1, Math.trunc(capacity ?? declared ?? defaultServerCapacity))
  const kept = reserve === undefined ? 'auto' : Math.max(0, Math.min(Math.trunc(reserve), places - 1))
  return parsePolicy({ capacity: places, reserve: kept, squeezeMs }, poolPolicy)
}
