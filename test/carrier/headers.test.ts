import type { IncomingHttpHeaders } from 'node:http'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { type PriorityClass, priorityClasses } from '../../machines/index.ts'
import { carrierCounters } from '../../src/carrier/counters.ts'
import { extract, inject } from '../../src/carrier/headers.ts'
import { withPriority } from '../../src/carrier/with-priority.ts'

const unknownWhile = (fn: () => void): number => {
  const before = carrierCounters().unknownPriorities
  fn()
  return carrierCounters().unknownPriorities - before
}

describe('inject', () => {
  it('states the class', () => {
    withPriority('interactive', () => {
      expect(inject()).toEqual({ 'x-resource-priority': 'interactive' })
      expect(inject({ accept: '*/*' })).toEqual({ accept: '*/*', 'x-resource-priority': 'interactive' })
      expect([...inject(new Headers({ accept: '*/*' }))]).toEqual([
        ['accept', '*/*'],
        ['x-resource-priority', 'interactive'],
      ])
    })
  })

  it('leaves the header out when untagged', () => {
    expect(inject()).toEqual({})
    expect(inject({ accept: '*/*' })).toEqual({ accept: '*/*' })
    expect(inject(new Headers()).has('x-resource-priority')).toBe(false)
  })

  it('replaces what was stated before, under any spelling of the name', () => {
    const before = { 'X-Resource-Priority': 'interactive', 'x-resource-priority': 'hydration', a: '1' }
    expect(inject(before)).toEqual({ a: '1' })
    expect(withPriority('background_ingestion', () => inject(before))).toEqual({
      a: '1',
      'x-resource-priority': 'background_ingestion',
    })
    const headers = inject(new Headers({ 'X-RESOURCE-PRIORITY': 'interactive' }))
    expect(headers.has('x-resource-priority')).toBe(false)
  })

  it('changes nothing that it was given', () => {
    const record = Object.freeze({ accept: '*/*' })
    const headers = new Headers()
    withPriority('interactive', () => {
      inject(record)
      inject(headers)
    })
    expect([...headers]).toEqual([])
  })
})

describe('extract', () => {
  const cases: ReadonlyArray<[string, IncomingHttpHeaders, PriorityClass | null, number]> = [
    ['absent', { accept: '*/*' }, null, 0],
    ['as sent', { 'x-resource-priority': 'background_ingestion' }, 'background_ingestion', 0],
    ['with a name of another case', { 'X-Resource-PRIORITY': 'hydration' }, 'hydration', 0],
    ['with space and case', { 'x-resource-priority': ' Interactive ' }, 'interactive', 0],
    ['blank', { 'x-resource-priority': ' ' }, null, 0],
    ['undefined', { 'x-resource-priority': undefined }, null, 0],
    ['as a list of one', { 'x-resource-priority': ['hydration'] }, 'hydration', 0],
    ['as a list of two', { 'x-resource-priority': ['hydration', 'interactive'] }, null, 1],
    ['unknown', { 'x-resource-priority': 'urgent' }, null, 1],
  ]

  it.each(cases)('reads a header that is %s', (_, headers, expected, unknown) => {
    expect(unknownWhile(() => expect(extract(headers)).toBe(expected))).toBe(unknown)
  })

  it.each(cases.filter(([, headers]) => !Array.isArray(headers['x-resource-priority'])))(
    'reads Headers whose header is %s',
    (_, record, expected) => {
      const headers = new Headers()
      for (const [name, value] of Object.entries(record)) {
        if (value !== undefined) headers.append(name, String(value))
      }
      expect(extract(headers)).toBe(expected)
    },
  )

  it('never makes an unknown value more than untagged, and counts each', () => {
    const value = fc
      .string()
      .filter(
        (text) => text.trim() !== '' && !priorityClasses.some((name) => name === text.trim().toLowerCase()),
      )
    fc.assert(
      fc.property(value, (text) => {
        expect(unknownWhile(() => expect(extract({ 'x-resource-priority': text })).toBe(null))).toBe(1)
      }),
    )
  })

  it('gives back what inject stated', () => {
    for (const priorityClass of [...priorityClasses, null]) {
      withPriority(priorityClass, () => {
        expect(extract(inject({ accept: '*/*' }))).toBe(priorityClass)
        expect(extract(inject(new Headers()))).toBe(priorityClass)
      })
    }
  })
})
