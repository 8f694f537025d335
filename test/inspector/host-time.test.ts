/** The page's time is the host's: the last time that the host reported, plus the time since then. */
import { describe, expect, it } from 'vitest'
import { HostTime } from '../../inspector/page/src/model/host-time.ts'

describe('the time of a page', () => {
  const told = (isRunning: boolean) => {
    const passed = { ms: 40 }
    const time = new HostTime(() => passed.ms)
    time.set(1_000, isRunning)
    return { passed, time }
  }

  it('goes on while nothing is heard, in whole milliseconds', () => {
    const { passed, time } = told(true)
    passed.ms += 75_000.6
    expect(time.nowMs()).toBe(76_000)
  })

  it('stands still for a recorded file', () => {
    const { passed, time } = told(false)
    passed.ms += 75_000
    expect(time.nowMs()).toBe(1_000)
  })

  it('stops where it was when the host is lost, and follows what it says when it is back', () => {
    const { passed, time } = told(true)
    passed.ms += 10
    time.stop()
    passed.ms += 5_000
    expect([time.nowMs(), time.isRunning]).toEqual([1_010, false])
    time.set(9_000, true)
    passed.ms += 1
    expect(time.nowMs()).toBe(9_001)
  })
})
