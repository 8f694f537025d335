/**
 * For the tests of policies: build calls, play scripts against a policy, go on from recorded journals and
 * snapshots, and move a host's clock by hand.
 */
export { ManualClock } from '../clock.ts'
export { buildCall, type TestCall } from './calls.ts'
export { laneMatchers } from './matchers.ts'
export { type Played, type PlayOptions, play, type Step } from './play.ts'
export { type LoadOptions, loadJournal, loadSnapshot, type RecordedJournal } from './recorded.ts'
