/**
 * Every line of the parity list and the test that shows it, chapter by chapter. `beat` marks a
 * fault of the Edict's own code that ours must not have.
 */
import type { Shown } from './shown.ts'

type Line = readonly [behaviour: string, file: string, test: string]

const asShown = (lines: ReadonlyArray<Line>): ReadonlyArray<Shown> =>
  lines.map(([behaviour, file, test]) => ({ behaviour, file, test }))

const priority = 'carrier/priority.test.ts'
const headers = 'carrier/headers.test.ts'
const flow = 'carrier/flow.test.ts'

export const priorityClasses = asShown([
  ['wire values and ranks', priority, 'a priority class'],
  ['only background_ingestion is background', priority, '%s has rank %i and goes by the %s lane'],
  [
    'untagged behaves as orchestration',
    'pools/model-gate.test.ts',
    'counts the untagged as orchestration: it never yields',
  ],
  [
    'an inner scope replaces the outer, leaving restores',
    flow,
    'is replaced as a whole by an inner one, and restored',
  ],
  [
    'leaving restores after a failure too',
    flow,
    'is restored after a throw and a rejection, and answers what the function does',
  ],
  ['a null scope untags', flow, 'untags with null'],
  ['a child is orchestration, of background it stays background', priority, 'from %s gives a child %s'],
  [
    'task types map by lane, hydration types are hydration whatever theirs',
    priority,
    'task %j of lane %j is %s',
  ],
  [
    'the rank goes to the server only when tagged',
    priority,
    'goes to a server that sorts by it, only when tagged',
  ],
  [
    'the rank goes into the body as `priority`',
    'gateway/calls/body-priority.test.ts',
    'the rank goes into %s',
  ],
  ['the header is absent when untagged', headers, 'leaves the header out when untagged'],
  ['the name of the header is case-insensitive', headers, 'reads a header that is %s'],
  ['beat: trims and ignores case', priority, 'reads %j as %s, unknown %s'],
  [
    'beat: an unknown value never escalates, and is counted',
    headers,
    'never makes an unknown value more than untagged, and counts each',
  ],
  ['beat: the class survives await, timers and streams', flow, 'the class survives'],
  ['beat: the class survives worker threads', 'carrier/borders.test.ts', 'a worker thread'],
])

const gate = 'pools/model-gate.test.ts'

export const modelGate = asShown([
  ['capacity is at least 1, an explicit reserve is clamped', gate, 'of %j has capacity %i and reserve %s'],
  [
    'the automatic reserve is at least 1 and leaves a place; none in a pool of one',
    'pools/reserve.test.ts',
    'is at least 1 in any real pool and leaves at least one place',
  ],
  ['the table of automatic reserves', 'pools/reserve.test.ts', 'of capacity %i is %i'],
  [
    'rounding is half to even',
    'machines/model/policy.test.ts',
    'of capacity %i sizes itself to %i: round half to even',
  ],
  [
    'never above capacity; high lands whenever a place is free; background not while high waits, and below capacity - reserve',
    gate,
    "admits exactly when the Edict's predicate says so, as long as nobody's wait is overdue",
  ],
  [
    'rank order, hydration with orchestration, within a rank who came first',
    gate,
    'among high waiters the rank decides, and within a rank the order of arrival',
  ],
  [
    'capacity 4, reserve 1: background refused at 3, high at 4',
    gate,
    'of 4 with reserve 1 refuses background at 3, takes a high one, and refuses the next high one at 4',
  ],
  [
    'background refused while a high one waits, even on an empty gate',
    gate,
    'refuses background while a high one waits, even on an empty gate',
  ],
  [
    'high lands whenever a place is free, however long background has waited',
    gate,
    'with background that has waited longer than any deferral, high lands whenever a place is free, at every size',
  ],
  ['every class in flight counts', gate, 'counts every class in flight against the places of background'],
  ['a single permit serves all', gate, 'of a single permit serves %s'],
  [
    'saturating background stays below; interactive and hydration land at once',
    gate,
    'under a saturating background, never above capacity - reserve, takes %s at once',
  ],
  [
    'idle: background peaks at capacity - reserve exactly',
    gate,
    'lets background have exactly capacity - reserve when nothing higher contends',
  ],
  [
    'the squeeze: of 8, background at 2 yes, at 3 no',
    gate,
    'of 8 places with reserve 1 takes background at 2 and refuses it at 3',
  ],
  ['the squeeze never reaches 0', gate, 'never reaches 0, at capacity %i and reserve %i'],
  ['the squeeze expires after 30 s', gate, 'expires, and then wakes the waiting calls'],
  ['a ceiling of 32 by default, explicit beats declared', gate, 'of %j has capacity %i and reserve %s'],
  [
    'beat: a release wakes who waits',
    gate,
    'a settlement lets the next one in within the same event, whoever waits and however',
  ],
  [
    'beat: a cancelled high waiter strands nobody',
    gate,
    'a high waiter that is cancelled strands no background',
  ],
  [
    'beat: the releaser does not barge',
    gate,
    'a releasing caller does not get in again ahead of the waiting ones',
  ],
  [
    'beat: interactive before orchestration among high waiters, first come first served within a rank',
    gate,
    'among high waiters the rank decides, and within a rank the order of arrival',
  ],
  [
    'beat: background waits no longer than a bound',
    gate,
    'background waits no longer than worstCaseWaitMs under high load that never ends',
  ],
  [
    'beat: that bound is reached and never passed, whatever the sizes of calls',
    'machines/scheduling/starvation.test.ts',
    'whatever the sizes of calls and the weight of their principal, none waits longer than the bound',
  ],
  [
    'beat: capacity changes in place',
    'machines/limits/capacity.test.ts',
    'there and back is as it was: there is one gate, not two',
  ],
  [
    'beat: a smaller capacity over-admits nobody',
    gate,
    'a capacity that shrinks admits nobody until enough have left, and one that grows admits at once',
  ],
  ['beat: permits have identity', gate, 'a second release of the same permit lets nobody in, and is counted'],
  [
    'beat: the end of a quiet window wakes who waits',
    'edict/quiet-window.test.ts',
    '(%s) wakes who waits when it ends, to the millisecond',
  ],
  [
    'beat: persistence',
    'pools/three-lanes.test.ts',
    'keeps its waiting tasks, and does not run again what may have run',
  ],
  [
    'beat: a view across processes: lanes, permits, oldest waits',
    'host/journal-status.test.ts',
    "sees another live process's lanes waiting and in flight, its permits and its oldest waits",
  ],
  [
    'beat: a view across processes: leases',
    'leases/processes.test.ts',
    'sees the lease of the first, and that it was released',
  ],
])

const mapConcurrent = 'fan-out/map-concurrent.test.ts'
const failure = 'fan-out/failure.test.ts'

export const fanOut = asShown([
  ['results in input order', mapConcurrent, 'answers in the order of the items, whichever ends first'],
  ['nothing for nothing', mapConcurrent, 'answers nothing for nothing'],
  ['capacity 1 is one after the other', mapConcurrent, 'runs one after the other at $name'],
  [
    'a failure is raised again',
    failure,
    'is raised again, aborts running items, withdraws waiting ones, and waits for them',
  ],
  [
    'the class is captured once',
    mapConcurrent,
    'captures the class once, whatever the items or the functions do to it',
  ],
  [
    'width and gate are both kept',
    mapConcurrent,
    'keeps the order, the width and the capacity, and ends every item',
  ],
  [
    'breaker before the gate: an open one refuses before a permit is asked for',
    'fan-out/breaker.test.ts',
    'that is open refuses every item, and no permit is asked for',
  ],
  [
    'breaker, then gate, then the work',
    'fan-out/breaker.test.ts',
    'is asked first, then the gate, then the function, and is told how it ended',
  ],
  [
    'breaker: half-open lets one through',
    'fan-out/breaker.test.ts',
    'that is half-open lets one through, and the rest when that one has succeeded',
  ],
  [
    'beat: the width comes before the permit, so that none idles',
    mapConcurrent,
    'takes the width before the permit: the scope never knows of more calls than the width',
  ],
  [
    'beat: nesting at full width is no deadlock',
    'fan-out/nested.test.ts',
    'does not deadlock at full width, two levels down',
  ],
  [
    'beat: a failure cancels the siblings',
    failure,
    'is raised again, aborts running items, withdraws waiting ones, and waits for them',
  ],
])

const pool = 'pools/worker-pool.test.ts'

export const workerLanes = asShown([
  ['the floor from reserve and workers', pool, 'of %i workers, %i reserved, is %i'],
  [
    'the floor is at least 1 even when nothing is reserved',
    pool,
    'is at least 1 even when nothing is reserved',
  ],
  [
    'ingestion cannot take the last slot, interactive may: never relaxed',
    pool,
    '(%s): ingestion cannot take the last slot, interactive may',
  ],
  ['a pool of one is not wedged', pool, '(%s) of 1 is not wedged: background works when nobody else does'],
  ['the cap of the bulky lane', pool, 'is %s'],
  ['the cap of a best-effort lane', pool, 'of best effort with a lane minimum of %i is %i'],
  [
    'a pool holds both caps at once',
    pool,
    'holds two lanes to caps of their own at once, and the lanes that nobody named to a third',
  ],
  [
    'memory generation leaves the acquisition floor, by default a quarter',
    pool,
    'for generating memories with %i workers and floor %s is %i',
  ],
  ['caps are never 0', pool, 'is never 0, whatever the pool'],
  [
    'uncovered lanes come first',
    pool,
    'gives lanes their turns one by one: one that waits for its first worker comes before the next task of a long one',
  ],
  [
    'beat: it decides and registers in one step',
    pool,
    'decides and registers in one step: asking twice in one moment never takes the same place twice',
  ],
])

const folder = 'leases/folder.test.ts'
const held = 'leases/leases.test.ts'
const processes = 'leases/processes.test.ts'

export const leases = asShown([
  ['the folder is private, of its own user and no symlink', folder, 'is refused when it is %s'],
  ['a folder of another user is refused', folder, 'is refused when it belongs to another user'],
  [
    'a record: random name, mode 0600, exactly two fields, in a folder of mode 0700',
    held,
    'is one private record with a random name and exactly two fields',
  ],
  [
    'a record is written beside, synced, renamed, and the folder synced',
    'edict/lease-record.test.ts',
    'is written beside its place, synced, moved there, and the folder synced',
  ],
  [
    'a record is whole at any moment',
    'edict/lease-record.test.ts',
    'is replaced as a whole: a reader never sees half of a record',
  ],
  ['a TTL of 3 s', held, 'ends one TTL after its last heartbeat'],
  ['a heartbeat each second', held, 'is renewed by heartbeats'],
  ['a heartbeat of at most half the TTL', folder, 'refuses a bad %s with its range'],
  [
    'the scan is kept for 0.25 s',
    folder,
    'is taken at most once per 250 ms, and again when the clock is set back',
  ],
  ['what makes a record valid: size, version, number, time', folder, '%s counts: %3$s'],
  ['a record that others could touch is ignored', folder, 'that others could touch (mode %i) does not count'],
  ['a record of another user is ignored', folder, 'of another user does not count'],
  [
    'a symlinked record is refused',
    folder,
    'that is a symbolic link, a folder, or of another name does not count',
  ],
  ['anything else is ignored', folder, 'counts in any surroundings, for any text'],
  ['a second process sees the lease', processes, 'sees the lease of the first, and that it was released'],
  [
    'it ends after a kill and the TTL',
    processes,
    'sees it end one TTL after the first was killed, and sweeps what it left',
  ],
  [
    'a stopped heartbeat expires',
    processes,
    'sees it expire when the first stands still, and again when it goes on',
  ],
  [
    'rapid re-entry revives no old heartbeat',
    held,
    'does not come back with an old heartbeat, however rapid the re-entry',
  ],
  ['129 files: 128 inspected', folder, 'inspects 128 of 129 records'],
  [
    'a folder that is opened to others later holds no lease',
    folder,
    'holds no lease once it can no longer be trusted',
  ],
  ['held for a whole stream', held, 'lasts for the whole of a stream, and ends when its reader leaves'],
  ['held for a whole stream, seen by another process', processes, 'sees it for the whole of a stream'],
  [
    'background waits, then proceeds',
    'leases/foreground-input.test.ts',
    'holds background back while it lasts, then lets it go',
  ],
  [
    'beat: stale records are swept',
    folder,
    'sweeps what expired long ago, its own user only, and leaves the rest',
  ],
  [
    'beat: a live lease is never missed',
    folder,
    'finds the live one among 400 expired ones, every time, wherever it lies',
  ],
  [
    'beat: the wait is bounded',
    'leases/foreground-input.test.ts',
    'holds background back for maxDeferralMs at most, then lets one call go',
  ],
])

const pacing = 'machines/limits/pacing.test.ts'

export const claimPacing = asShown([
  [
    'the delay doubles up to its limit, jittered',
    pacing,
    'after %i refusals in a row is at most %i ms and at least half of it, whatever the jitter',
  ],
  [
    'a shed raises the count and sets the window, an admission clears both',
    'edict/claim-window.test.ts',
    'goes on as a refusal raises the count and sets the window, and an acceptance clears both',
  ],
  ['an empty claim counts as admitted', pacing, 'an empty answer counts as accepted'],
  ['other errors change nothing', pacing, 'a refusal that waiting does not mend paces nobody'],
  [
    'an attempt inside the window reaches nobody and does not compound',
    'edict/claim-window.test.ts',
    'an attempt reaches nobody, compounds nothing, and is told when the window ends',
  ],
  [
    'classes are independent',
    pacing,
    'leaves the other classes alone: primaries go while background is paced',
  ],
  ['each class is independent of each', pacing, '%s leaves every other class of the same lane alone'],
  [
    'a flood hits the engine less than a third as often',
    pacing,
    'hits the engine less than a third as often as it would',
  ],
  ['windows grow', pacing, 'has windows that grow'],
  ['interactive is never paced', pacing, 'never paces interactive'],
  ['ingest progresses', pacing, 'makes progress once the engine takes it again'],
  [
    'beat: one burst counts once',
    pacing,
    'waits as one: 8 refusals of one burst pause it once, for one base window',
  ],
  [
    'beat: no overflow',
    pacing,
    'does not overflow: after 1,025 refusals the window is finite and within its limit',
  ],
  [
    'beat: one half-open probe',
    pacing,
    'sends one probe after its pause, then two with its acceptance, then three',
  ],
  [
    'beat: Retry-After is respected',
    pacing,
    'is not sent before the time that the provider states, and a shorter one later does not shorten it',
  ],
  ['beat: keyed by scope', pacing, 'leaves the same class of another scope alone'],
  ['beat: survives a restart', pacing, 'still waits after a restart, exactly as long'],
])

const qos = 'machines/scheduling/qos.test.ts'

export const engineQos = asShown([
  [
    'bands, quotas, bursts and rates from the capacity',
    qos,
    'of %i places: bands of %i, %i calls of a principal, bursts of %i, %i a second',
  ],
  ['the ceilings of the classes', qos, 'of %i places are %j, lowest class first: never below 1'],
  ['of 8 places, classes are shed at 5, 6, 7 and 8', qos, 'shed %s at %i live calls of 8'],
  ['the quota of a principal', qos, 'is held to its quota: a quarter of the places'],
  [
    'fair share of 16 places between 11 principals is 1, and interactive is exempt',
    qos,
    'is held to its fair share once places are scarce: 16 places between 11 are 1 each',
  ],
  ['fair share only when places are scarce', qos, 'has its quota to itself while places are plenty'],
  ['a bucket refills by arithmetic', qos, 'is told when its bucket holds the next call, to the millisecond'],
  ['buckets are isolated', qos, 'has a bucket of its own for each class, isolated from all others'],
  [
    'principal quota, class ceiling, fair share, bucket: in this order',
    qos,
    'is the quota, the ceiling, the fair share, the bucket',
  ],
  ['every refusal says BUSY, why, and to retry with backoff', qos, 'for %s says %s'],
  [
    'a refusal through the host',
    'host/shed.test.ts',
    'rejects with a typed error that says when to come back',
  ],
  [
    'a refusal through the gateway',
    'gateway/calls/shed.test.ts',
    'is a 429 with retry-after, and BUSY in the body where SDKs look for it',
  ],
  [
    'plan order',
    'machines/scheduling/waiting-order.test.ts',
    'is by class, then by deadline, none last, then by arrival',
  ],
  [
    'soak of 32: interactive within 5 ms at p99 and at most 2 % shed, while ingest is shed',
    'machines/scheduling/qos-soak.test.ts',
    'lets interactive in within 5 ms at p99 and sheds at most 2 in 100 of it, while ingest is shed (seed %i)',
  ],
  [
    'beat: a small pool starves no class',
    qos,
    'leave ingest a place in a pool of %i when nothing higher contends',
  ],
  [
    'beat: a sequential flood is limited',
    qos,
    'that sends one call after the other is limited too: its bucket stays while it has nothing in flight',
  ],
  [
    'beat: it checks and counts in one step',
    'host/shed.test.ts',
    'is one of a burst: fifty that ask at once are checked and counted one by one',
  ],
  [
    'beat: whoever is counted lives, whatever happens',
    qos,
    'the counted calls are the live calls, and no class is let in at its ceiling',
  ],
])
