import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { laneOfClass, type PriorityClass, priorityClasses, priorityRanks } from '../../machines/index.ts'
import { parsePriority, priorityForTaskType, priorityRank } from '../../src/carrier/priority.ts'
import {
  currentPriority,
  delegate,
  delegated,
  priorityField,
  withPriority,
} from '../../src/carrier/with-priority.ts'

describe('a priority class', () => {
  it.each([
    ['interactive', 0, 'primary'],
    ['orchestration', 1, 'primary'],
    ['hydration', 1, 'primary'],
    ['background_ingestion', 3, 'auxiliary'],
  ] as const)('%s has rank %i and goes by the %s lane', (name, rank, lane) => {
    expect(priorityRanks[name]).toBe(rank)
    expect(priorityRank(name)).toBe(rank)
    expect(laneOfClass(name)).toBe(lane)
  })

  it('goes to a server that sorts by it, only when tagged', () => {
    expect(priorityRank(null)).toBe(undefined)
    expect({ model: 'qwen', ...priorityField() }).toEqual({ model: 'qwen' })
    expect(withPriority('interactive', priorityField)).toEqual({ priority: 0 })
    expect(withPriority('background_ingestion', priorityField)).toEqual({ priority: 3 })
    expect(withPriority('interactive', () => withPriority(null, priorityField))).toEqual({})
  })
})

describe('parsePriority', () => {
  it.each([
    ['interactive', 'interactive', false],
    ['orchestration', 'orchestration', false],
    ['hydration', 'hydration', false],
    ['background_ingestion', 'background_ingestion', false],
    ['  Interactive\t', 'interactive', false],
    ['BACKGROUND_INGESTION', 'background_ingestion', false],
    ['Background_Ingestion \r\n', 'background_ingestion', false],
    ['', null, false],
    ['   ', null, false],
    [null, null, false],
    [undefined, null, false],
    ['urgent', null, true],
    ['0', null, true],
    ['interactive!', null, true],
    ['interactive, background_ingestion', null, true],
    ['background-ingestion', null, true],
    ['__proto__', null, true],
    ['constructor', null, true],
  ] as ReadonlyArray<[string | null | undefined, PriorityClass | null, boolean]>)(
    'reads %j as %s, unknown %s',
    (text, priorityClass, unknown) => {
      expect(parsePriority(text)).toEqual({ priorityClass, unknown })
    },
  )

  it('never makes more of a text than it says: it is a class by name, or untagged', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), (text) => {
        const { priorityClass, unknown } = parsePriority(text)
        const name = text.trim().toLowerCase()
        expect(priorityClass).toBe(priorityClasses.find((known) => known === name) ?? null)
        expect(unknown).toBe(name !== '' && priorityClass === null)
      }),
    )
  })
})

describe('priorityForTaskType', () => {
  it.each([
    ['queries', undefined, 'interactive'],
    ['kg_memory', 'queries', 'interactive'],
    ['conversation', 'queries', 'interactive'],
    ['skill_workflows', undefined, 'hydration'],
    ['skill_workflows', 'documents', 'hydration'],
    ['skill_workflows', 'queries', 'hydration'],
    ['capability_hydration', 'codebase', 'hydration'],
    ['codebase', undefined, 'background_ingestion'],
    ['documents', 'documents', 'background_ingestion'],
    ['enrichment', 'research', 'background_ingestion'],
    ['', '', 'background_ingestion'],
  ] as const)('task %j of lane %j is %s', (taskType, lane, expected) => {
    expect(priorityForTaskType(taskType, lane)).toBe(expected)
  })

  it('takes other hydration types', () => {
    expect(priorityForTaskType('mcp_load', 'documents', ['mcp_load'])).toBe('hydration')
    expect(priorityForTaskType('skill_workflows', 'documents', ['mcp_load'])).toBe('background_ingestion')
  })
})

describe('delegation', () => {
  it.each([
    [null, 'orchestration'],
    ['interactive', 'orchestration'],
    ['orchestration', 'orchestration'],
    ['hydration', 'orchestration'],
    ['background_ingestion', 'background_ingestion'],
  ] as const)('from %s gives a child %s', (ambient, child) => {
    withPriority(ambient, () => {
      expect(delegated()).toBe(child)
      expect(delegate(currentPriority)).toBe(child)
      expect(delegate(() => delegate(currentPriority))).toBe(child)
      expect(currentPriority()).toBe(ambient)
    })
  })
})
