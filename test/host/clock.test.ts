/** A machine whose clock is set, or that sleeps: time goes on, and due timers are noticed in bounded time. */
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { type Clock, ManualClock, steadyClock } from '../../src/clock.ts'
import { Alarm, longestUnwatchedMs } from '../../src/host/alarm.ts'

const hour = 3_600_000
const start = 1_000_000_000

/** Its clock can be set while its timers go on, as a real machine's do. */
class Machine implements Clock {
  readonly #timers = new ManualClock(start)
  #offsetMs = 0
  #sleptMs = 0

  now(): number {
    return this.#timers.now() + this.#offsetMs + this.#sleptMs
  }

  after(ms: number, fn: () => void): () => void {
    return this.#timers.after(ms, fn)
  }

  elapsed(): number {
    return this.#timers.now() - start
  }

  set(byMs: number): void {
    this.#offsetMs += byMs
  }

  /** Neither timers nor `elapsed` count the time. */
  sleep(ms: number): void {
    this.#sleptMs += ms
  }

  run(ms: number): void {
    this.#timers.advance(ms)
  }

  get timersArmed(): boolean {
    return this.#timers.nextAt() !== null
  }
}

describe('a clock that never goes back', () => {
  it.each<[name: string, then: (machine: Machine) => void, passedMs: number]>([
    ['goes on by what has passed when its machine is set back unnoticed', (m) => m.set(-hour), 30_000],
    ['also when it is set back by less than has passed', (m) => m.set(-20_000), 30_000],
    ['follows when its machine is set forward', (m) => m.set(hour), hour + 30_000],
    ['follows when its machine has slept', (m) => m.sleep(8 * hour), 8 * hour + 30_000],
    ['takes nothing for a jump that is within reading', (m) => m.set(-49), 30_000 - 49],
  ])('%s', (_, then, passedMs) => {
    const machine = new Machine()
    const steady = steadyClock(machine)
    const before = steady.now()
    machine.run(10_000)
    then(machine)
    machine.run(20_000)
    expect(steady.now() - before).toBe(passedMs)
  })

  it('without another clock beside it stands still rather than go back', () => {
    const machine = new Machine()
    const steady = steadyClock({ now: () => machine.now(), after: machine.after.bind(machine) })
    const before = steady.now()
    machine.set(-hour)
    expect(steady.now()).toBe(before)
    machine.run(5)
    expect(steady.now()).toBe(before + 5)
  })

  it('does not run ahead, however often and finely it is read', () => {
    fc.assert(
      fc.property(fc.array(fc.double({ min: 0, max: 3, noNaN: true }), { maxLength: 500 }), (steps) => {
        let real = start
        const shown = (): number => Math.floor(real)
        const steady = steadyClock({ now: shown, after: () => () => {}, elapsed: () => real })
        for (const step of steps) {
          real += step
          expect(steady.now()).toBe(shown())
        }
      }),
    )
  })

  it('never goes back, and never stops, whatever its machine does', () => {
    const move = fc.record({ ran: fc.nat({ max: 60_000 }), set: fc.integer({ min: -hour, max: hour }) })
    fc.assert(
      fc.property(fc.array(move, { maxLength: 50 }), (moves) => {
        const machine = new Machine()
        const steady = steadyClock(machine)
        for (const { ran, set } of moves) {
          const before = steady.now()
          machine.set(set)
          machine.run(ran)
          expect(steady.now() - before).toBeGreaterThanOrEqual(Math.max(0, ran - 50))
        }
      }),
    )
  })
})

describe('an alarm', () => {
  /** One alarm for `atMs` after the start, and when it rang, in time really passed. */
  const armed = (afterMs: number) => {
    const machine = new Machine()
    const clock = steadyClock(machine)
    const dueAt = clock.now() + afterMs
    const rang: number[] = []
    const alarm = new Alarm(clock, () => {
      if (clock.now() < dueAt) return dueAt
      rang.push(machine.elapsed())
      return null
    })
    alarm.set(dueAt)
    return { machine, alarm, rang }
  }

  it('rings when its time has come, however far that is, and then arms nothing', () => {
    const { machine, rang } = armed(40 * 24 * hour)
    machine.run(40 * 24 * hour - 1)
    expect(rang).toEqual([])
    machine.run(1)
    expect(rang).toEqual([40 * 24 * hour])
    expect(machine.timersArmed).toBe(false)
  })

  it.each<[name: string, jump: (machine: Machine) => void]>([
    ['its machine has slept past it', (machine) => machine.sleep(8 * hour)],
    ['its machine is set past it', (machine) => machine.set(2 * hour)],
  ])('rings within five seconds when %s', (_, jump) => {
    const { machine, rang } = armed(hour)
    machine.run(61_000)
    jump(machine)
    machine.run(longestUnwatchedMs)
    expect(rang).toHaveLength(1)
    expect(rang[0]).toBeLessThanOrEqual(61_000 + longestUnwatchedMs)
    expect(longestUnwatchedMs).toBe(5_000)
  })

  it.each([1, 61_000, hour - 1])('rings on time when its machine is set back after %i ms', (ranMs) => {
    const { machine, rang } = armed(hour)
    machine.run(ranMs)
    machine.set(-3 * hour)
    machine.run(hour - ranMs)
    expect(rang).toEqual([hour])
  })

  it('stops looking when nothing is asked for any more, and arms nothing when nothing was', () => {
    const machine = new Machine()
    let asked: number | null = start + hour
    const alarm = new Alarm(machine, () => asked)
    alarm.set(null)
    expect(machine.timersArmed).toBe(false)
    alarm.set(asked)
    asked = null
    machine.run(longestUnwatchedMs)
    expect(machine.timersArmed).toBe(false)
    alarm.set(start + 2 * hour)
    alarm.stop()
    expect(machine.timersArmed).toBe(false)
  })
})
