import type { InvalidField, JsonObject } from './dialect.ts'

export const isObject = (value: unknown): value is JsonObject =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

export const isInvalid = (value: object): value is InvalidField => 'field' in value

/** A whole number of at least 1 when it is given. */
export const isCount = (value: unknown): value is number => Number.isInteger(value) && Number(value) >= 1
