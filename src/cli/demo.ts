/** `rightofway demo`: the incident, with and without lanes, side by side. */
import { Console, Effect } from 'effect'
import { Command, Flag } from 'effect/cli'
import type { CallRecord } from '../simulation/world.ts'
import { attempt } from './failure.ts'
import { jsonFlag } from './flags.ts'

const minuteMs = 60_000
/** Virtual time between two pictures of the live table. */
const frameMs = 15_000
const frameDelayMs = 60

type Incident = ReturnType<typeof import('../simulation/incident.ts').startIncident>

interface Side {
  readonly name: string
  readonly incident: Incident
}

const openSides = async (
  seed: number,
  primariesAtMs: ReadonlyArray<number>,
): Promise<ReadonlyArray<Side>> => {
  const { startIncident } = await import('../simulation/incident.ts')
  const { laneScheduler, retryingClients, sdkRetries } = await import('../simulation/schedulers.ts')
  const { seededRandom } = await import('../simulation/random.ts')
  const persistent = { ...sdkRetries, retries: Number.POSITIVE_INFINITY }
  return [
    {
      name: 'without lanes',
      incident: startIncident({
        seed,
        primariesAtMs,
        scheduler: (world) => retryingClients(world, persistent, seededRandom(seed)),
      }),
    },
    {
      name: 'rightofway',
      incident: startIncident({ seed, primariesAtMs, scheduler: (world) => laneScheduler(world, {}) }),
    },
  ]
}

const waitOf = ({ submittedAtMs, acceptedAtMs }: CallRecord, nowMs: number): string => {
  if (acceptedAtMs !== null) return `answered after ${Math.round((acceptedAtMs - submittedAtMs) / 1000)} s`
  return `still waiting, ${Math.round((nowMs - submittedAtMs) / 1000)} s`
}

const row = (cells: ReadonlyArray<string>): string =>
  cells.map((cell, index) => (index === 0 ? cell.padEnd(15) : cell.padStart(14))).join('')

const header = row(['', 'conversations', 'their 429s', 'background', 'tokens served', 'its 429s'])

const summaryRow = ({ name, incident }: Side): string => {
  const { primaries, auxiliariesServed, auxiliaryTokens, auxiliaryRefusals } = incident.summary()
  const answered = primaries.filter(({ acceptedAtMs }) => acceptedAtMs !== null).length
  const refusals = primaries.reduce((sum, primary) => sum + primary.refusals, 0)
  const millions = `${(auxiliaryTokens / 1e6).toFixed(2)} M`
  return row([
    name,
    `${answered} of ${primaries.length}`,
    `${refusals}`,
    `${auxiliariesServed} calls`,
    millions,
    `${auxiliaryRefusals}`,
  ])
}

const frame = (sides: ReadonlyArray<Side>): string => {
  const { timeline, startMs } = sides[0]!.incident
  const clock = `${((timeline.now() - startMs) / minuteMs).toFixed(2)} min`
  return [
    row([
      clock,
      ...header
        .slice(15)
        .match(/.{14}/g)!
        .map((cell) => cell.trim()),
    ]),
    ...sides.map(summaryRow),
  ].join('\n')
}

const details = (sides: ReadonlyArray<Side>): string =>
  sides
    .flatMap(({ name, incident }) => {
      const { primaries } = incident.summary()
      return primaries.map(
        (primary) => `${name.padEnd(15)}${primary.call.id}: ${waitOf(primary, incident.timeline.now())}`,
      )
    })
    .join('\n')

const play = async (sides: ReadonlyArray<Side>, durationMs: number, isLive: boolean): Promise<void> => {
  for (let passedMs = frameMs; passedMs <= durationMs; passedMs += frameMs) {
    for (const { incident } of sides) incident.timeline.runUntil(incident.startMs + passedMs)
    if (!isLive) continue
    process.stdout.write(`${passedMs > frameMs ? '\x1b[3A' : ''}\x1b[J${frame(sides)}\n`)
    await new Promise((resolve) => setTimeout(resolve, frameDelayMs))
  }
}

export const demoVerb = Command.make(
  'demo',
  {
    minutes: Flag.Int('minutes').pipe(
      Flag.withDescription('Minutes of traffic, 5 to 600'),
      Flag.withDefault(30),
    ),
    seed: Flag.Int('seed').pipe(Flag.withDescription('Seed of the traffic'), Flag.withDefault(1)),
    json: jsonFlag,
  },
  Effect.fn(function* ({ minutes, seed, json }) {
    if (minutes < 5 || minutes > 600)
      return yield* attempt(() => Promise.reject(new Error(`--minutes must be in [5, 600], got ${minutes}`)))
    const durationMs = minutes * minuteMs
    if (json) {
      const sides = yield* attempt(() => openSides(seed, [2 * minuteMs, durationMs / 2]))
      yield* attempt(() => play(sides, durationMs, false))
      const summaries = sides.map(({ name, incident }) => JSON.stringify({ name, ...incident.summary() }))
      return yield* Console.log(summaries.join('\n'))
    }
    yield* Console.log(
      'A provider that takes 210,000 input tokens a minute. Nine background workers send 50-70k calls without a\n' +
        `pause; a 181k conversation call comes after 2 minutes and another half-way. ${minutes} minutes, on virtual time.\n`,
    )
    const sides = yield* attempt(() => openSides(seed, [2 * minuteMs, durationMs / 2]))
    const isLive = process.stdout.isTTY === true
    yield* attempt(() => play(sides, durationMs, isLive))
    if (!isLive) yield* Console.log(frame(sides))
    yield* Console.log(`\n${details(sides)}`)
  }),
).pipe(Command.withDescription('Play the incident with and without lanes, and compare'))
