import { chmodSync, chownSync, mkdirSync, symlinkSync, utimesSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { ManualClock } from '../../src/clock.ts'
import { InvalidInput } from '../../src/index.ts'
import { runs } from '../properties/runs.ts'
import {
  bodyOf,
  madeFolder,
  openForTest,
  randomName,
  recordsIn,
  temporaryFolder,
  writeByHand,
} from './fixture.ts'

const ttlMs = 3_000
/** Epoch milliseconds at which these stories begin: files carry the machine's own time. */
const startMs = Math.floor(Date.now() / 1_000) * 1_000

describe('a folder of leases', () => {
  it.each([
    ['readable by its group', () => madeFolder(0o750), 'mode 0750'],
    ['writable by all', () => madeFolder(0o777), 'mode 0777'],
    [
      'a symbolic link',
      () => {
        const folder = temporaryFolder()
        symlinkSync(madeFolder(), folder)
        return folder
      },
      'a symbolic link',
    ],
    [
      'a file',
      () => {
        const folder = temporaryFolder()
        writeFileSync(folder, '')
        return folder
      },
      'no folder',
    ],
  ])('is refused when it is %s', (_, make, fault) => {
    const folder = make()
    expect(() => openForTest(folder)).toThrow(InvalidInput)
    expect(() => openForTest(folder)).toThrow(
      `expected a folder of user ${process.getuid!()} with mode 0700 that is no symbolic link, got ${fault}`,
    )
  })

  it.runIf(process.getuid?.() === 0)('is refused when it belongs to another user', () => {
    const folder = madeFolder()
    chownSync(folder, 12_345, 12_345)
    expect(() => openForTest(folder)).toThrow('a folder of user 12345')
  })

  it('holds no lease once it can no longer be trusted', () => {
    const folder = madeFolder()
    const clock = new ManualClock(startMs)
    const worker = openForTest(folder, { clock })
    writeByHand(folder, bodyOf(startMs + ttlMs))
    expect(worker.active()).toBe(true)
    chmodSync(folder, 0o755)
    clock.advance(250)
    expect(worker.active()).toBe(false)
  })

  it.each([
    ['ttlMs', { ttlMs: 0 }, '(0, 3600000], got 0'],
    ['heartbeatMs', { heartbeatMs: 1_501 }, '(0, 1500], got 1501'],
    ['lookEveryMs', { lookEveryMs: Number.NaN }, '(0, 3000], got NaN'],
  ])('refuses a bad %s with its range', (field, options, message) => {
    expect(() => openForTest(madeFolder(), options)).toThrow(
      `leases.${field}: expected a number of milliseconds in ${message}`,
    )
  })
})

describe('a record', () => {
  const live = bodyOf(startMs + ttlMs)
  const is = (folder: string): boolean => openForTest(folder, { clock: new ManualClock(startMs) }).active()

  it.each([
    ['in force', live, true],
    ['in force for one more millisecond', bodyOf(startMs + 1), true],
    ['in force for twice the TTL', bodyOf(startMs + 2 * ttlMs), true],
    ['written with spaces', `{ "version": 1, "expires_at": ${startMs / 1_000 + 1.5} }\n`, true],
    ['that expires now', bodyOf(startMs), false],
    ['that expired', bodyOf(startMs - 1), false],
    ['from too far in the future', bodyOf(startMs + 2 * ttlMs + 1), false],
    ['of another version', live.replace('1', '2'), false],
    ['with a version of text', live.replace('1', '"1"'), false],
    ['with a third field', live.replace('}', ',"pid":1}'), false],
    ['without an expiry', '{"version":1}', false],
    ['with an expiry of text', `{"version":1,"expires_at":"${startMs / 1_000 + 1}"}`, false],
    ['with an infinite expiry', '{"version":1,"expires_at":1e999}', false],
    ['with an expiry of null', '{"version":1,"expires_at":null}', false],
    ['of 256 bytes', live + ' '.repeat(256 - live.length), true],
    ['of 257 bytes', live + ' '.repeat(257 - live.length), false],
    ['cut short', live.slice(0, -1), false],
    ['that is empty', '', false],
    ['that is no object', '1', false],
    ['that is a list', '[1,2]', false],
  ])('%s counts: %3$s', (_, body, counts) => {
    const folder = madeFolder()
    writeByHand(folder, body)
    expect(is(folder)).toBe(counts)
  })

  it.each([0o640, 0o604, 0o620, 0o602, 0o610, 0o601, 0o644, 0o666])(
    'that others could touch (mode %i) does not count',
    (mode) => {
      const folder = madeFolder()
      writeByHand(folder, live, { mode })
      expect(is(folder)).toBe(false)
    },
  )

  it.runIf(process.getuid?.() === 0)('of another user does not count', () => {
    const folder = madeFolder()
    chownSync(writeByHand(folder, live), 12_345, 12_345)
    expect(is(folder)).toBe(false)
  })

  it('that is a symbolic link, a folder, or of another name does not count', () => {
    const folder = madeFolder()
    symlinkSync(writeByHand(madeFolder(), live), join(folder, randomName()))
    mkdirSync(join(folder, randomName()))
    writeByHand(folder, live, { name: 'lease.json' })
    writeByHand(folder, live, { name: `.${randomName()}.tmp` })
    expect(is(folder)).toBe(false)
  })

  it('counts in any surroundings, for any text', () => {
    fc.assert(
      fc.property(
        fc.array(fc.string({ maxLength: 300 }), { maxLength: 5 }),
        fc.boolean(),
        (texts, isHeld) => {
          const folder = madeFolder()
          for (const text of texts) writeByHand(folder, text)
          if (isHeld) writeByHand(folder, live)
          expect(is(folder)).toBe(isHeld)
        },
      ),
      { numRuns: runs(50) },
    )
  })
})

describe('a look into the folder', () => {
  it('inspects 128 of 129 records', () => {
    const folder = madeFolder()
    for (let count = 0; count < 129; count++) writeByHand(folder, bodyOf(startMs + ttlMs))
    const worker = openForTest(folder, { clock: new ManualClock(startMs) })
    expect(worker.active()).toBe(true)
    expect(worker.counters).toMatchObject({ looks: 1, inspected: 128, swept: 0 })
  })

  it('inspects the newest, so that what others leave behind hides no lease', () => {
    const folder = madeFolder()
    for (let count = 0; count < 300; count++) {
      utimesSync(writeByHand(folder, 'what is this?'), startMs / 1_000 - 5, startMs / 1_000 - 5)
    }
    writeByHand(folder, bodyOf(startMs + ttlMs))
    const worker = openForTest(folder, { clock: new ManualClock(startMs) })
    expect(worker.active()).toBe(true)
    expect(worker.counters.inspected).toBe(128)
  })

  it('finds the live one among 400 expired ones, every time, wherever it lies', () => {
    const found = Array.from({ length: 40 }, (_, round) => {
      const folder = madeFolder()
      for (let count = 0; count <= 400; count++) {
        // Expired a moment ago in every other round: such a one may not be swept yet.
        const expired = bodyOf(startMs - (round % 2 === 0 ? 1 : 3 * ttlMs))
        writeByHand(folder, count === round * 10 ? bodyOf(startMs + ttlMs) : expired)
      }
      return openForTest(folder, { clock: new ManualClock(startMs) }).active()
    })
    expect(found.filter((isFound) => isFound)).toHaveLength(40)
  })

  it('sweeps what expired long ago, its own user only, and leaves the rest', () => {
    const folder = madeFolder()
    const clock = new ManualClock(startMs)
    for (let count = 0; count < 400; count++) writeByHand(folder, bodyOf(startMs - 2 * ttlMs))
    const kept = [
      writeByHand(folder, bodyOf(startMs - 2 * ttlMs + 1)),
      writeByHand(folder, bodyOf(startMs + ttlMs)),
      writeByHand(folder, 'nonsense'),
      writeByHand(folder, bodyOf(1), { mode: 0o644 }),
      writeByHand(folder, bodyOf(1), { name: 'notes.json' }),
    ]
    const worker = openForTest(folder, { clock })
    expect(worker.active()).toBe(true)
    expect(worker.counters).toMatchObject({ inspected: 2, swept: 400 })
    expect(recordsIn(folder)).toHaveLength(kept.length)
    clock.advance(10 * ttlMs)
    expect(worker.active()).toBe(false)
    expect(worker.counters.swept).toBe(402)
    expect(recordsIn(folder)).toHaveLength(3)
  })

  it('sweeps the temporary files of processes that died', () => {
    const folder = madeFolder()
    const path = writeByHand(folder, '{"ver', { name: `.${randomName()}.tmp` })
    utimesSync(path, startMs / 1_000, startMs / 1_000)
    const clock = new ManualClock(startMs + 59_999)
    const worker = openForTest(folder, { clock })
    worker.active()
    expect(recordsIn(folder)).toHaveLength(1)
    clock.advance(250)
    worker.active()
    expect(recordsIn(folder)).toEqual([])
  })

  it('is taken at most once per 250 ms, and again when the clock is set back', () => {
    const clock = new ManualClock(startMs)
    const worker = openForTest(madeFolder(), { clock })
    const looksAfter = (ms: number): number => {
      clock.jump(clock.now() + ms)
      worker.active()
      return worker.counters.looks
    }
    expect([0, 249, 1, 100, -3_600_000].map(looksAfter)).toEqual([1, 1, 2, 2, 3])
  })
})
