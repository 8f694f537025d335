/** The same load on BullMQ, a job queue of repute, over a Redis that syncs every write. */
import { Queue, Worker } from 'bullmq'
import { contractPolicy } from '../../machines/index.ts'
import { median } from './journal-measure.ts'
import type { OwnRedis } from './redis-server.ts'

type Connection = OwnRedis['connection']

interface Pool {
  readonly queue: Queue
  readonly worker: Worker
  /** Called when a job may run; the job ends when it returns. */
  begun: (id: string) => void
  ended: () => void
}

const openPool = async (connection: Connection, name: string, concurrency: number): Promise<Pool> => {
  // As many ended jobs are remembered as a scope remembers ended calls, so that one that comes again is known.
  const removeOnComplete = { count: contractPolicy.settledRetention }
  const queue = new Queue(name, { connection, defaultJobOptions: { removeOnComplete } })
  const begin = async ({ id }: { id?: string }) => pool.begun(id ?? '')
  const worker = new Worker(name, begin, { connection, concurrency })
  const pool: Pool = { queue, worker, begun: () => {}, ended: () => {} }
  worker.on('completed', () => pool.ended())
  await worker.waitUntilReady()
  return pool
}

const closePools = async (pools: ReadonlyArray<Pool>): Promise<void> => {
  await Promise.all(pools.map(({ worker }) => worker.close()))
  await Promise.all(pools.map(({ queue }) => queue.close()))
}

/** The data of a job: the same bytes that the host writes for a call. */
const payload = { principal: 'tenant', inputTokens: 1_200, outputTokens: 300 }

/** `calls` jobs, of which `waiting` stand in each of `scopes` queues while there are so many left; microseconds per job. */
export const saturateBullMq = async (
  connection: Connection,
  { scopes, waiting, calls, tag }: { scopes: number; waiting: number; calls: number; tag: string },
): Promise<number> => {
  const pools = await Promise.all(
    Array.from({ length: scopes }, (_, n) => openPool(connection, `pool-${n}`, 8)),
  )
  let asked = 0
  let ended = 0
  const done = Promise.withResolvers<void>()
  const ask = (pool: Pool): void => {
    const jobId = `${tag}-${asked++}`
    pool.queue.add('call', payload, { jobId }).catch(done.reject)
  }
  for (const pool of pools) {
    pool.ended = () => {
      ended += 1
      if (asked < calls) ask(pool)
      if (ended === calls) done.resolve()
    }
  }
  const beganMs = performance.now()
  for (const pool of pools) for (let n = 0; n < waiting; n += 1) ask(pool)
  await done.promise
  const us = ((performance.now() - beganMs) * 1_000) / calls
  await closePools(pools)
  return us
}

/** One job after the other: the median time from asking to running, microseconds. */
export const sequentialBullMq = async (connection: Connection, count: number): Promise<number> => {
  const pool = await openPool(connection, 'sequential', 1)
  const times: number[] = []
  for (let n = 0; n < count; n += 1) {
    const ended = new Promise<void>((resolve) => {
      pool.ended = resolve
    })
    const beganMs = performance.now()
    pool.begun = () => times.push((performance.now() - beganMs) * 1_000)
    await pool.queue.add('call', payload, { jobId: `seq-${n}` })
    await ended
  }
  await closePools([pool])
  return median(times)
}
