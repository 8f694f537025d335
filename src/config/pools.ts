/**
 * Policies of scopes without a provider: worker pools, read lanes, and a gate over one model. All keep fixed
 * minimums free.
 */
import { InvalidInput, type Policy, parsePolicy, poolPolicy } from '../../machines/index.ts'

const count = (field: string, value: number, least: number): number => {
  if (Number.isInteger(value) && value >= least && value <= 65_536) return value
  throw new InvalidInput([{ field, expected: `an integer in [${least}, 65536]`, got: String(value) }])
}

export interface WorkerPool {
  /** 1 to 65,536. */
  readonly workers: number
  /** Workers that background must leave free. At least one is kept, also when this is 0. Default 0. */
  readonly reserved?: number
}

/**
 * Workers that only primaries may take: at least one. A pool of one worker keeps none, or its background
 * would never run.
 */
export const interactiveFloor = ({ workers, reserved = 0 }: WorkerPool): number =>
  Math.min(Math.max(1, reserved), Math.max(0, workers - 1))

export interface LaneCap extends WorkerPool {
  /** Lanes that wait for their first worker. Default 0. */
  readonly otherPendingLanes?: number
  /** Workers that each of them may count on. Default 1. */
  readonly perLaneMin?: number
  /** Workers that the lane gets even when others wait, within the pool's size. Default 1. */
  readonly atLeast?: number
  /** The operator's choice. It wins over the other fields. */
  readonly explicit?: number
}

/** Workers that one bulky background lane may hold. Never 0. */
export const bulkLaneCap = (cap: LaneCap): number => {
  const { workers, reserved = 0, otherPendingLanes = 0, perLaneMin = 1, atLeast = 1, explicit } = cap
  if (explicit !== undefined && explicit > 0) return explicit
  const left = workers - reserved - otherPendingLanes * perLaneMin
  return Math.max(1, left, Math.min(atLeast, Math.max(1, workers - reserved)))
}

/** Workers that a lane of unawaited work may hold. Never 0. */
export const bestEffortLaneCap = (perLaneMin: number): number => Math.max(1, perLaneMin)

/**
 * Workers for generating memories: the pool minus the workers that acquire them (by default a quarter). Never
 * 0.
 */
export const generationWorkers = (workers: number, acquisitionFloor = Math.floor(workers / 4)): number =>
  Math.max(1, workers - Math.max(1, acquisitionFloor))

export interface LanedPool extends WorkerPool {
  /**
   * Workers of each background lane by its name, for example from `bulkLaneCap` and `bestEffortLaneCap`. 1 to
   * 65,536.
   */
  readonly laneCaps?: Readonly<Record<string, number>>
  /** Workers of each background lane that `laneCaps` does not name, 1 to 65,536. Default: the whole pool. */
  readonly laneCap?: number
}

/**
 * A pool of workers: `host.scope('worker-pool', workerPoolPolicy({ workers: 8 }))`, one call per
 * task, its lane as the principal. Throws `InvalidInput`.
 */
export const workerPoolPolicy = ({ laneCaps = {}, laneCap, ...pool }: LanedPool): Policy => {
  const capacity = count('workerPool.workers', pool.workers, 1)
  count('workerPool.reserved', pool.reserved ?? 0, 0)
  for (const [lane, cap] of Object.entries(laneCaps)) count(`workerPool.laneCaps.${lane}`, cap, 1)
  return parsePolicy(
    {
      capacity,
      reserve: interactiveFloor(pool),
      quotas: laneCaps,
      principalQuota: laneCap === undefined ? null : count('workerPool.laneCap', laneCap, 1),
    },
    poolPolicy,
  )
}

/**
 * A read lane of an engine: at least one slot stays free of background work, however much of it arrives.
 * Throws `InvalidInput`.
 */
export const engineReadPolicy = ({
  slots,
  reserved = 1,
}: {
  readonly slots: number
  readonly reserved?: number
}): Policy => {
  const capacity = count('engineRead.slots', slots, 1)
  count('engineRead.reserved', reserved, 0)
  return parsePolicy({ capacity, reserve: interactiveFloor({ workers: slots, reserved }) }, poolPolicy)
}

/** The capacity of a model server when neither the operator nor the model's description states one. */
export const defaultServerCapacity = 32

export interface ModelGate {
  /** The operator's choice; wins over `declared`. Below 1 counts as 1, fractions are cut off. */
  readonly capacity?: number
  /** The capacity that the model's description states. */
  readonly declared?: number
  /** Clamped to [0, capacity-1]; sized from the capacity when left out. */
  readonly reserve?: number
  /** For this long after a primary was admitted, background may fill only half its places. Default 30 s. */
  readonly squeezeMs?: number
}

/** A gate over one shared model server: primaries never wait for background in flight. */
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
