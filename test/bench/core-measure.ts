/**
 * Interleaved rounds, so that a busy moment of the machine hits every scheduler alike; medians of
 * them. The time is the processor's, not the wall's: on a machine that is shared, the wall tells of
 * the neighbours.
 */
import { contenders, type Session } from './contenders.ts'

export interface Measured {
  readonly name: string
  readonly backlog: number
  /** Median, processor microseconds per job: one admission and one settlement. */
  readonly us: number
  /** The bare actor's, in the same run. */
  readonly baselineUs: number
  readonly ratio: number
}

export interface MeasureOptions {
  readonly backlogs: ReadonlyArray<number>
  readonly rounds: number
  /** Share of the jobs of a full run. */
  readonly scale: number
}

const median = (values: ReadonlyArray<number>): number =>
  [...values].sort((one, other) => one - other)[Math.floor(values.length / 2)] as number

const timed = async (session: Session, jobs: number): Promise<number> => {
  const before = process.cpuUsage()
  await session.run(jobs)
  const { user, system } = process.cpuUsage(before)
  return (user + system) / jobs
}

const measureAt = async (
  backlog: number,
  { rounds, scale }: MeasureOptions,
): Promise<Map<string, number>> => {
  const taking = contenders.filter(
    ({ largestBacklog, name }) => backlog <= largestBacklog || name === contenders[0]?.name,
  )
  const open: Array<{ name: string; jobs: number; session: Session; us: number[] }> = []
  for (const { name, jobs, open: begin } of taking)
    open.push({ name, jobs: Math.max(10, Math.round(jobs * scale)), session: await begin(backlog), us: [] })
  // Once for the compiler.
  for (const { session, jobs } of open) await session.run(jobs)
  for (let round = 0; round < rounds; round += 1)
    for (const { session, jobs, us } of open) us.push(await timed(session, jobs))
  for (const { session } of open) await session.close()
  return new Map(open.map(({ name, us }) => [name, median(us)]))
}

export const measure = async (options: MeasureOptions): Promise<ReadonlyArray<Measured>> => {
  const measured: Measured[] = []
  for (const backlog of options.backlogs) {
    const medians = await measureAt(backlog, options)
    const baselineUs = medians.get(contenders[0]?.name as string) as number
    for (const [name, us] of medians) measured.push({ name, backlog, us, baselineUs, ratio: us / baselineUs })
  }
  return measured
}
