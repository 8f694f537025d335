/** A journal row with a malformed event is named by its number, and causes no decision. */
import { expect, it } from 'vitest'
import { readRecord } from '../../src/host/read-record.ts'
import { JournalCorrupt } from '../../src/journal/journal.ts'

const rowOf = (event: object) => ({
  position: 7,
  scope: 'worker-pool',
  at: 1_000,
  record: JSON.stringify({ event, decisions: [] }),
})

it.each([
  ['without a time', { type: 'clock.woke', at: null }, 'event.at'],
  ['of no known type', { type: 'call.vanished', at: 1_000 }, 'event.type'],
  ['of a call without an id', { type: 'call.accepted', at: 1_000 }, 'event.callId'],
])('an event %s', (_, event, field) => {
  expect(() => readRecord('lanes.db', rowOf(event))).toThrow(JournalCorrupt)
  expect(() => readRecord('lanes.db', rowOf(event))).toThrow(field)
  expect(() => readRecord('lanes.db', rowOf(event))).toThrow('entries 7')
})

it('an event that is a fact is read as it was written', () => {
  const event = { type: 'clock.woke', at: 1_000 }
  expect(readRecord('lanes.db', rowOf(event)).event).toEqual(event)
})
