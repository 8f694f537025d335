/** Every line of the parity list and the test that shows it. `beat` marks what the Edict's own code gets wrong. */
import type { Shown } from './shown.ts'

type Line = readonly [behaviour: string, file: string, test: string]

const asShown = (lines: ReadonlyArray<Line>): ReadonlyArray<Shown> =>
  lines.map(([behaviour, file, test]) => ({ behaviour, file, test }))

export const priorityClasses = asShown([
  ['wire values and ranks', 'carrier/priority.test.ts', 'a priority class'],
  [
    'untagged behaves as orchestration',
    'pools/model-gate.test.ts',
    'counts the untagged as orchestration: it never yields',
  ],
  [
    'an inner scope replaces the outer, leaving restores',
    'carrier/flow.test.ts',
    'is replaced as a whole by an inner one, and restored',
  ],
  ['a null scope untags', 'carrier/flow.test.ts', 'untags with null'],
  ['a child is orchestration, of background it stays background', 'carrier/priority.test.ts', 'delegation'],
  ['task types map by lane', 'carrier/priority.test.ts', 'priorityForTaskType'],
  [
    'the rank goes to the server only when tagged',
    'carrier/priority.test.ts',
    'goes to a server that sorts by it, only when tagged',
  ],
  ['the header is absent when untagged', 'carrier/headers.test.ts', 'leaves the header out when untagged'],
  ['the name of the header is case-insensitive', 'carrier/headers.test.ts', 'reads a header that is %s'],
  ['beat: trims and ignores case', 'carrier/priority.test.ts', 'parsePriority'],
  [
    'beat: an unknown value never escalates, and is counted',
    'carrier/headers.test.ts',
    'never makes an unknown value more than untagged, and counts each',
  ],
  ['beat: the class survives await, timers and streams', 'carrier/flow.test.ts', 'the class survives'],
  ['beat: the class survives worker threads', 'carrier/borders.test.ts', 'a worker thread'],
])

export const modelGate = asShown([
  [
    'capacity is at least 1, an explicit reserve is clamped',
    'pools/model-gate.test.ts',
    'of %j has capacity %i and reserve %s',
  ],
  ['the table of automatic reserves', 'pools/reserve.test.ts', 'the reserve that sizes itself'],
  [
    'rounding is half to even',
    'machines/policy.test.ts',
    'of capacity %i sizes itself to %i: round half to even',
  ],
  [
    'rank order, within a rank who came first',
    'pools/model-gate.test.ts',
    'among high waiters the rank decides, and within a rank who came first',
  ],
  [
    'capacity 4, reserve 1: background refused at 3, high at 4',
    'pools/model-gate.test.ts',
    'of 4 with reserve 1 refuses background at 3, takes a high one, and refuses the next high one at 4',
  ],
  [
    'background refused while a high one waits, even on an empty gate',
    'pools/model-gate.test.ts',
    'refuses background while a high one waits, even on an empty gate',
  ],
  [
    'every class in flight counts',
    'pools/model-gate.test.ts',
    'counts every class in flight against the places of background',
  ],
  ['a single permit serves all', 'pools/model-gate.test.ts', 'of a single permit serves %s'],
  [
    'saturating background stays below; interactive and hydration land at once',
    'pools/model-gate.test.ts',
    'under a saturating background, never above capacity - reserve, takes %s at once',
  ],
  [
    'idle: background peaks at capacity - reserve exactly',
    'pools/model-gate.test.ts',
    'lets background have exactly capacity - reserve when nothing higher contends',
  ],
  [
    'the squeeze: of 8, background at 2 yes, at 3 no',
    'pools/model-gate.test.ts',
    'of 8 places with reserve 1 takes background at 2 and refuses it at 3',
  ],
  [
    'the squeeze never reaches 0',
    'pools/model-gate.test.ts',
    'never reaches 0, at capacity %i and reserve %i',
  ],
  ['the squeeze expires', 'pools/model-gate.test.ts', 'expires, and wakes who waits when it does'],
  [
    'a ceiling of 32 by default, explicit beats declared',
    'pools/model-gate.test.ts',
    'of %j has capacity %i and reserve %s',
  ],
  [
    'beat: a release wakes who waits',
    'pools/model-gate.test.ts',
    'a settlement lets the next one in within the same event, whoever waits and however',
  ],
  [
    'beat: a cancelled high waiter strands nobody',
    'pools/model-gate.test.ts',
    'a high waiter that is cancelled strands no background',
  ],
  [
    'beat: the releaser does not barge',
    'pools/model-gate.test.ts',
    'who releases does not get in again ahead of who waits',
  ],
  [
    'beat: background waits no longer than a bound',
    'machines/starvation.test.ts',
    'with %i principals: each one is served within the bound, and the last exactly at it',
  ],
  [
    'beat: capacity changes in place',
    'machines/capacity.test.ts',
    'there and back is as it was: there is one gate, not two',
  ],
  [
    'beat: permits have identity',
    'pools/model-gate.test.ts',
    'a second release of the same permit lets nobody in, and is counted',
  ],
  [
    'beat: persistence',
    'pools/three-lanes.test.ts',
    'keeps its waiting tasks, and does not run again what may have run',
  ],
  [
    'beat: a view across processes',
    'leases/processes.test.ts',
    'sees the lease of the first, and that it was released',
  ],
  [
    'beat: the end of a quiet window wakes who waits',
    'edict/quiet-window.test.ts',
    'wakes who waits when it ends, to the millisecond',
  ],
])

export const fanOut = asShown([
  [
    'results in input order',
    'fan-out/map-concurrent.test.ts',
    'answers in the order of the items, whichever ends first',
  ],
  ['nothing for nothing', 'fan-out/map-concurrent.test.ts', 'answers nothing for nothing'],
  [
    'a failure is raised again',
    'fan-out/failure.test.ts',
    'is raised again, aborts who runs, withdraws who waits, and waits for them',
  ],
  [
    'the class is captured once',
    'fan-out/map-concurrent.test.ts',
    'captures the class once, whatever the items or the functions do to it',
  ],
  [
    'capacity and width are kept, capacity 1 is one by one',
    'fan-out/map-concurrent.test.ts',
    'keeps the order, the width and the capacity, and ends every item',
  ],
  [
    'beat: the width comes before the permit',
    'fan-out/map-concurrent.test.ts',
    'takes the width before the permit: the scope never knows of more calls than the width',
  ],
  [
    'beat: nesting at full width is no deadlock',
    'fan-out/nested.test.ts',
    'does not deadlock at full width, two levels down',
  ],
  [
    'beat: a failure cancels the siblings',
    'fan-out/failure.test.ts',
    'is raised again, aborts who runs, withdraws who waits, and waits for them',
  ],
])

export const workerLanes = asShown([
  [
    'the floor is at least 1 even when nothing is reserved',
    'pools/worker-pool.test.ts',
    'is at least 1 even when nothing is reserved',
  ],
  [
    'ingestion cannot take the last slot, interactive may',
    'pools/worker-pool.test.ts',
    'ingestion cannot take the last slot, interactive may',
  ],
  [
    'a pool of one is not wedged',
    'pools/worker-pool.test.ts',
    'of 1 is not wedged: background works when nobody else does',
  ],
  ['caps are never 0', 'pools/worker-pool.test.ts', 'is never 0, whatever the pool'],
  ['the caps of lanes', 'pools/worker-pool.test.ts', 'the cap of a lane'],
  [
    'uncovered lanes come first',
    'pools/worker-pool.test.ts',
    'gives lanes their turns one by one: one that waits for its first worker comes before the next task of a long one',
  ],
  [
    'beat: it decides and registers in one step',
    'pools/worker-pool.test.ts',
    'decides and registers in one step: asking twice in one moment never takes the same place twice',
  ],
])

export const leases = asShown([
  [
    'a second process sees the lease',
    'leases/processes.test.ts',
    'sees the lease of the first, and that it was released',
  ],
  [
    'it ends after a kill and the TTL',
    'leases/processes.test.ts',
    'sees it end one TTL after the first was killed, and sweeps what it left',
  ],
  [
    'a stopped heartbeat expires',
    'leases/processes.test.ts',
    'sees it expire when the first stands still, and again when it goes on',
  ],
  [
    'rapid re-entry revives no old heartbeat',
    'leases/leases.test.ts',
    'does not come back with an old heartbeat, however rapid the re-entry',
  ],
  ['129 files: 128 inspected', 'leases/folder.test.ts', 'inspects 128 of 129 records'],
  [
    'a symlinked record is refused',
    'leases/folder.test.ts',
    'that is a symbolic link, a folder, or of another name does not count',
  ],
  ['a symlinked or open folder is refused', 'leases/folder.test.ts', 'a folder of leases'],
  [
    'held for a whole stream',
    'leases/leases.test.ts',
    'lasts for the whole of a stream, and ends when its reader leaves',
  ],
  [
    'background waits, then proceeds',
    'leases/foreground-input.test.ts',
    'holds background back while it lasts, then lets it go',
  ],
  [
    'beat: stale records are swept',
    'leases/folder.test.ts',
    'sweeps what expired long ago, its own user only, and leaves the rest',
  ],
  [
    'beat: a live lease is never missed',
    'leases/folder.test.ts',
    'finds the live one among 400 expired ones, every time, wherever it lies',
  ],
  [
    'beat: the wait is bounded',
    'leases/foreground-input.test.ts',
    'holds background back for maxDeferralMs at most, then lets one call go',
  ],
])

export const claimPacing = asShown([
  [
    'the delay doubles up to its limit, jittered',
    'machines/pacing.test.ts',
    'after %i refusals in a row is at most %i ms and at least half of it, whatever the jitter',
  ],
  ['an empty claim counts as admitted', 'machines/pacing.test.ts', 'an empty answer counts as accepted'],
  [
    'other errors change nothing',
    'machines/pacing.test.ts',
    'a refusal that waiting does not mend paces nobody',
  ],
  [
    'classes are independent',
    'machines/pacing.test.ts',
    'leaves the other classes alone: primaries go while background is paced',
  ],
  [
    'a flood hits the engine less than a third as often',
    'machines/pacing.test.ts',
    'hits the engine less than a third as often as it would',
  ],
  ['windows grow', 'machines/pacing.test.ts', 'has windows that grow'],
  ['interactive is never paced', 'machines/pacing.test.ts', 'never paces interactive'],
  ['ingest progresses', 'machines/pacing.test.ts', 'makes progress once the engine takes it again'],
  [
    'beat: one burst counts once',
    'machines/pacing.test.ts',
    'waits as one: 8 refusals of one burst pause it once, for one base window',
  ],
  [
    'beat: no overflow',
    'machines/pacing.test.ts',
    'does not overflow: after 1,025 refusals the window is finite and within its limit',
  ],
  [
    'beat: one half-open probe',
    'machines/pacing.test.ts',
    'sends one probe after its pause, then two with its acceptance, then three',
  ],
  [
    'beat: Retry-After is respected',
    'machines/pacing.test.ts',
    'is not sent before the time that the provider states, and a shorter one later does not shorten it',
  ],
  ['beat: keyed by scope', 'machines/pacing.test.ts', 'leaves the same class of another scope alone'],
  ['beat: survives a restart', 'machines/pacing.test.ts', 'still waits after a restart, exactly as long'],
])
