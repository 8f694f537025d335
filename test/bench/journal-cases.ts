/** The cases of `npm run bench:journal`, each over a journal of its own in `folder`. */
import { join } from 'node:path'
import { explainFrom } from '../../src/host/explain.ts'
import type { Kernel } from '../../src/host/kernel.ts'
import { openSqliteReader } from '../../src/journal/reader.ts'
import { rawCommitUs } from './journal-floor.ts'
import { admitAlone, callOf, fill, openOn, patient, saturate, writeHistory } from './journal-load.ts'
import { longestStallMs, type Measured, measured, median } from './journal-measure.ts'
import { redisProgram, startRedis } from './redis-server.ts'

export interface Sizes {
  /** Calls of a case that counts calls. */
  readonly calls: number
  /** Calls that wait in the deep cases. */
  readonly deep: number
  /** Events of the journal that is recovered without a checkpoint. */
  readonly events: number
}

export const fullSizes: Sizes = { calls: 20_000, deep: 100_000, events: 1_000_000 }

/** A host runs for days, so the compiler's work on the first calls must not count as the cost of a call. */
const warmUpRounds = 2

/** The size of one commit of a saturated host. */
const callsPerCommit = 64

const within = (text: string, held: boolean) => ({ text, held })

/** The host's entries for a call: its submission, which is its dispatch, and its settlement. */
const recordsOf = (callId: string): readonly [admission: string, settlement: string] => {
  const at = Date.now()
  const submitted = { type: 'call.submitted', call: callOf(callId), dispatchAtOnce: true, at }
  const admit = { callId, verdict: 'admit', reason: 'open', at, state: 'idle', dispatched: true }
  const usage = { inputTokens: 1_200, outputTokens: 280 }
  const settled = { type: 'call.settled', callId, outcome: 'completed', usage, at }
  return [
    JSON.stringify({ event: submitted, decisions: [admit] }),
    JSON.stringify({ event: settled, decisions: [] }),
  ]
}

/** One call after the other, each alone in its commit: the median time to a durable permit. */
export const sequentialAdmit = async (folder: string, { calls }: Sizes): Promise<ReadonlyArray<Measured>> => {
  const kernel = await openOn(join(folder, 'sequential.db'))
  const runner = kernel.scope('sequential', patient)
  const count = Math.min(calls, 3_000)
  const times: number[] = []
  const [admission] = recordsOf('seq-10000')
  const raw = () => rawCommitUs(join(folder, `raw-${times.length}.db`), [admission], Math.ceil(count / 4))
  // Taken in turns, since a disk is not the same from one second to the next.
  const floors = [raw()]
  for (let part = 0; part < 3; part += 1) {
    for (let n = 0; n < count / 3; n += 1)
      times.push(await admitAlone(kernel, runner, `seq-${part * count + n}`))
    floors.push(raw())
  }
  await kernel.close(0)
  const [us, floor] = [median(times), median(floors)]
  return [
    measured('sequential durable admit, p50', us, {
      baseline: floor,
      bound: within('<= 2x a raw commit', us <= 2 * floor),
    }),
  ]
}

/** Eight scopes with a hundred calls asked for in each: microseconds per durable call. */
export const saturated = async (folder: string, { calls }: Sizes): Promise<ReadonlyArray<Measured>> => {
  const kernel = await openOn(join(folder, 'saturated.db'))
  const runners = Array.from({ length: 8 }, (_, n) => kernel.scope(`pool-${n}`, patient))
  await saturate(runners, { waiting: 100, calls: warmUpRounds * calls, tag: 'warm' })
  const times: number[] = []
  for (const tag of ['one', 'two', 'three', 'four', 'five'])
    times.push(await saturate(runners, { waiting: 100, calls, tag }))
  const us = median(times)
  await kernel.close(0)
  const group = Array.from({ length: callsPerCommit }, (_, n) => recordsOf(`hot-${10_000 + n}`)).flat()
  const floor = rawCommitUs(join(folder, 'raw-group.db'), group, 50) / callsPerCommit
  return [
    measured('saturated, 8 scopes x 100 waiting, per call', us, {
      baseline: floor,
      bound: within('<= 30 us', us <= 30),
    }),
  ]
}

/**
 * The same load beside a queue of ten and beside a deep queue of many principals; then a checkpoint of the
 * deep queue, and its recovery.
 */
export const deepQueue = async (folder: string, { calls, deep }: Sizes): Promise<ReadonlyArray<Measured>> => {
  const path = join(folder, 'deep.db')
  const kernel = await openOn(path)
  const scopeWith = async (waiting: number): Promise<Runner> => {
    const runner = kernel.scope(`depth-${waiting}`, { ...patient, capacity: 8 })
    await takeAllPlaces(runner)
    await fill(runner, waiting)
    return runner
  }
  const [shallow, runner] = [await scopeWith(10), await scopeWith(deep)]
  for (const one of [shallow, runner]) await churn(one, warmUpRounds * calls, 'warm')
  const times = { shallow: [] as number[], deep: [] as number[] }
  // In turns, so that a busy moment of the machine hits both.
  for (let round = 0; round < 7; round += 1) {
    times.shallow.push(await churn(shallow, calls / 4, `round-${round}`))
    times.deep.push(await churn(runner, calls / 4, `round-${round}`))
  }
  const [shallowUs, deepUs] = [median(times.shallow), median(times.deep)]
  const stallMs = await longestStallMs(() => kernel.checkpoint(runner))
  await kernel.close(0)
  const beganMs = performance.now()
  const again = await openOn(path)
  const recoveryMs = performance.now() - beganMs
  await again.close(0)
  return [
    measured(`an event beside ${deep} waiting`, deepUs, {
      baseline: shallowUs,
      bound: within('<= 1.3x of 10 waiting', deepUs <= 1.3 * shallowUs),
    }),
    measured(`checkpoint of ${deep} waiting: longest stall of the event loop`, stallMs * 1_000, {
      bound: within('<= 50 ms', stallMs <= 50),
    }),
    measured(`recovery of ${deep} waiting calls`, recoveryMs * 1_000, {
      bound: within('< 2 s', recoveryMs < 2_000),
    }),
  ]
}

type Runner = ReturnType<Kernel['scope']>

const takeAllPlaces = async (runner: Runner): Promise<void> => {
  const places = runner.context.policy.capacity
  const held = Array.from(
    { length: places },
    (_, n) =>
      new Promise((granted, refused) =>
        runner.submit(callOf(`place-${n}`), { dispatch: 'withGrant', stays: false, granted, refused }),
      ),
  )
  await Promise.all(held)
}

/** Calls that come, wait and are withdrawn: microseconds per event. */
const churn = async (runner: Runner, calls: number, tag: string): Promise<number> => {
  const beganMs = performance.now()
  for (let n = 0; n < calls; n += 1) {
    const callId = `${tag}-${n}`
    runner.tell({ type: 'call.submitted', call: callOf(callId) })
    runner.tell({ type: 'call.withdrawn', callId })
    if (n % 200 === 199) await new Promise((resolve) => setImmediate(resolve))
  }
  return ((performance.now() - beganMs) * 1_000) / (2 * calls)
}

/** A long history without a checkpoint, recovered and asked about. */
export const longHistory = async (folder: string, { events }: Sizes): Promise<ReadonlyArray<Measured>> => {
  const path = join(folder, 'long.db')
  writeHistory(path, events)
  const beganMs = performance.now()
  const kernel = await openOn(path)
  const recoveryMs = performance.now() - beganMs
  const reader = await openSqliteReader(path)
  const explained = async (callId: string): Promise<number> => {
    const fromMs = performance.now()
    await explainFrom(reader, path, callId)
    return (performance.now() - fromMs) * 1_000
  }
  const newest = await explained(`call-${Math.floor(events / 3) - 2}`)
  const unknown = await explained('never-asked-for')
  reader.close()
  await kernel.close(0)
  return [
    measured(`recovery of ${events} events without a checkpoint`, recoveryMs * 1_000, {
      bound: within('< 10 s', recoveryMs < 10_000),
    }),
    measured(`explain the newest call of ${events} events`, newest),
    measured(`explain a call that none of ${events} events names`, unknown),
  ]
}

/** The part that the comparison with BullMQ needs and that is missing here; null when nothing is missing. */
export const missingForBullMq = (): string | null => (redisProgram() === null ? 'redis-server' : null)

/** The same work on BullMQ over a Redis with `appendfsync always`, in turns with ours. */
export const besideBullMq = async (folder: string, { calls }: Sizes): Promise<ReadonlyArray<Measured>> => {
  const program = redisProgram()
  if (program === null) return []
  const { saturateBullMq, sequentialBullMq } = await import('./journal-bullmq.ts')
  const redis = await startRedis(program, folder)
  const kernel = await openOn(join(folder, 'beside.db'))
  const load = { waiting: 100, calls }
  const count = Math.min(calls, 600)
  const runners = Array.from({ length: 8 }, (_, n) => kernel.scope(`pool-${n}`, patient))
  const times = { ours: [] as number[], theirs: [] as number[] }
  const alone = { ours: [] as number[], theirs: [] as number[] }
  try {
    for (const tag of ['warm', 'warmer', 'one', 'two', 'three']) {
      const ours = await saturate(runners, { ...load, tag })
      const theirs = await saturateBullMq(redis.connection, { ...load, scopes: 8, tag })
      if (tag.startsWith('warm')) continue
      times.ours.push(ours)
      times.theirs.push(theirs)
    }
    const runner = kernel.scope('alone', patient)
    for (let n = 0; n < count; n += 1) alone.ours.push(await admitAlone(kernel, runner, `alone-${n}`))
    alone.theirs.push(await sequentialBullMq(redis.connection, count))
  } finally {
    await redis.close()
    await kernel.close(0)
  }
  const [us, bullMq] = [median(times.ours), median(times.theirs)]
  return [
    measured('saturated, 8 scopes x 100 waiting, per call, beside BullMQ', us, {
      baseline: bullMq,
      bound: within('at most a sixth of it', us * 6 <= bullMq),
    }),
    measured('sequential durable admit, p50, beside BullMQ', median(alone.ours), {
      baseline: median(alone.theirs),
    }),
  ]
}

export const cases = { sequentialAdmit, saturated, deepQueue, longHistory, besideBullMq }
