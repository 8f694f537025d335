/** Schedulers that are measured: each keeps a backlog of no-op jobs in two priorities, one place, and is run job by job. */
import { AsyncLocalStorage } from 'node:async_hooks'
import { setTimeout as sleep } from 'node:timers/promises'
import { Sema } from 'async-sema'
import Bottleneck from 'bottleneck'
import fastq from 'fastq'
import pLimit from 'p-limit'
import PQueue from 'p-queue'
import { createActor, createMachine } from 'xstate'
import { type Call, poolPolicy, providerScope, type ScopeEvent } from '../../machines/index.ts'
import { openHost } from '../../src/index.ts'

/** A scheduler that has its backlog. */
export interface Session {
  /** Admits, runs and settles so many jobs; as many new ones come, so that the backlog stays. */
  readonly run: (jobs: number) => Promise<void>
  readonly close: () => Promise<void>
}

export interface Contender {
  readonly name: string
  /** Jobs per round, so that a slow one does not take the whole time. */
  readonly jobs: number
  /** Largest backlog that is worth the wait. */
  readonly largestBacklog: number
  readonly open: (backlog: number) => Promise<Session>
}

type Job = () => Promise<void>
type Add = (job: Job, high: boolean) => unknown

/** A session over anything that takes jobs: the last job of a round holds the place until the next round. */
const sessionOf = (add: Add, backlog: number, close: () => Promise<void> = async () => {}): Session => {
  let left = 0
  let added = 0
  let done = (): void => {}
  let place = Promise.withResolvers<void>()
  const next = (): void => {
    added += 1
    add(job, added % 2 === 0)
  }
  const job: Job = async () => {
    left -= 1
    if (left > 0) return next()
    done()
    await place.promise
    next()
  }
  const held = place
  add(() => held.promise, true)
  for (let waiting = 0; waiting < backlog; waiting += 1) next()
  return {
    run: (jobs) =>
      new Promise((resolve) => {
        left = jobs
        done = resolve
        const { resolve: release } = place
        place = Promise.withResolvers()
        release()
      }),
    close,
  }
}

const blank: Call = {
  id: '',
  turnId: null,
  lane: 'primary',
  priorityClass: 'interactive',
  principal: 'default',
  inputTokens: 0,
  outputTokens: 0,
  deadlineAt: null,
  dependsOn: [],
  parentId: null,
}

const callOf = (id: string, high: boolean): Call =>
  high
    ? { ...blank, id }
    : {
        ...blank,
        id,
        lane: 'auxiliary',
        priorityClass: 'background_ingestion',
        principal: `residence-${id.length % 3}`,
      }

/** The decision core alone: a submission and a settlement per job, to the actor. */
export const openCore = (
  backlog: number,
): Session & { readonly actor: ReturnType<typeof createActor<typeof providerScope>> } => {
  const policy = { ...poolPolicy, capacity: 1, auxiliaryPendingTimeoutMs: 24 * 60 * 60_000 }
  const actor = createActor(providerScope, { input: { scope: 'bench', policy, at: 1 } }).start()
  let at = 1
  let count = 0
  let running = ''
  const send = (event: ScopeEvent): void => {
    actor.send(event)
    for (const { verdict, callId } of actor.getSnapshot().context.scope.decisions)
      if (verdict === 'admit' || verdict === 'release') running = callId
  }
  const submit = (): void => {
    count += 1
    send({ type: 'call.submitted', at, call: callOf(`call-${count}`, count % 2 === 0) })
  }
  for (let waiting = 0; waiting <= backlog; waiting += 1) submit()
  return {
    actor,
    run: async (jobs) => {
      for (let job = 0; job < jobs; job += 1) {
        at += 1
        send({ type: 'call.settled', at, callId: running, outcome: 'completed' })
        submit()
      }
    },
    close: async () => {
      actor.stop()
    },
  }
}

const openHostSession = async (backlog: number): Promise<Session> => {
  const host = await openHost()
  const scope = host.scope('bench', { ...poolPolicy, capacity: 1 })
  // A job adds the next one, which is no part of it: inside it, it would borrow its place instead of queueing.
  const outside = AsyncLocalStorage.snapshot()
  const add: Add = (job, high) =>
    outside(() => scope.run({ lane: high ? 'primary' : 'auxiliary', inputTokens: 0 }, job))
      // Those that wait when the host closes.
      .catch(() => {})
  return sessionOf(add, backlog, () => host.close())
}

/** The life of a job as five states, sent to a bare actor: what XState itself costs. */
const bareMachine = createMachine({
  initial: 'idle',
  states: {
    idle: { on: { submit: 'pending' } },
    pending: { on: { grant: 'admitted' } },
    admitted: { on: { dispatch: 'running' } },
    running: { on: { settle: 'settled' } },
    settled: { on: { submit: 'pending' } },
  },
})

/** Per job as many events as the core gets: two. */
const openBare = async (): Promise<Session> => {
  const actor = createActor(bareMachine).start()
  const events = ['submit', 'grant', 'dispatch', 'settle'] as const
  let sent = 0
  return {
    run: async (jobs) => {
      for (let event = 0; event < 2 * jobs; event += 1) {
        actor.send({ type: events[sent % 4] as string })
        sent += 1
      }
    },
    close: async () => {
      actor.stop()
    },
  }
}

const everything = 100_000

/** The first is measured against; `rightofway` is ours. */
export const contenders: ReadonlyArray<Contender> = [
  { name: 'bare XState actor', jobs: 20_000, largestBacklog: 10, open: openBare },
  {
    name: 'rightofway core',
    jobs: 20_000,
    largestBacklog: everything,
    open: async (backlog) => openCore(backlog),
  },
  { name: 'rightofway host', jobs: 10_000, largestBacklog: everything, open: openHostSession },
  {
    name: 'p-queue',
    jobs: 1_000,
    largestBacklog: everything,
    open: async (backlog) => {
      const queue = new PQueue({ concurrency: 1 })
      return sessionOf((job, high) => queue.add(job, { priority: high ? 1 : 0 }), backlog)
    },
  },
  {
    name: 'bottleneck',
    jobs: 50,
    // It takes jobs in one by one, a timer each, about 300 a second: 100,000 would be on their way
    // for minutes after the measurement, which would neither find them waiting nor let the process end.
    largestBacklog: 1_000,
    open: async (backlog) => {
      const limiter = new Bottleneck({ maxConcurrent: 1 })
      const session = sessionOf((job, high) => limiter.schedule({ priority: high ? 1 : 9 }, job), backlog)
      while (limiter.counts().QUEUED < backlog) await sleep(10)
      return session
    },
  },
  {
    name: 'p-limit, no priorities',
    jobs: 10_000,
    largestBacklog: everything,
    open: async (backlog) => {
      const limit = pLimit(1)
      return sessionOf((job) => limit(job), backlog)
    },
  },
  {
    name: 'fastq, no priorities',
    jobs: 10_000,
    largestBacklog: everything,
    open: async (backlog) => {
      const queue = fastq.promise((job: Job) => job(), 1)
      return sessionOf((job) => queue.push(job), backlog)
    },
  },
  {
    name: 'async-sema, no priorities',
    jobs: 10_000,
    largestBacklog: everything,
    open: async (backlog) => {
      const sema = new Sema(1)
      const add: Add = async (job) => {
        await sema.acquire()
        await job().finally(() => sema.release())
      }
      return sessionOf(add, backlog)
    },
  },
]
