/**
 * Checks the lists of a snapshot; the longest has a row for every waiting call. The checks are plain
 * comparisons, a hundred times faster than a schema. When a comparison fails, the schema names the fault. A
 * law of the tests shows that both agree.
 */
import { Schema } from 'effect'
import { CallSchema, isCall } from '../model/call.ts'
import { decodeOrThrow, InvalidInput, integer, maxSafe } from '../model/invalid.ts'
import type { InFlight, Waiting } from '../state/context.ts'

const counted = integer(0, maxSafe)
const stages = ['admitted', 'dispatched', 'accepted'] as const

export const WaitingSchema = Schema.Struct({
  call: CallSchema,
  seq: counted,
  submittedAt: Schema.Int,
  attempts: counted,
  reason: Schema.String,
  urgent: Schema.Boolean,
  waitsFor: Schema.Array(Schema.String),
  unclaimedUntilMs: Schema.NullOr(Schema.Int),
  /** Missing in rows that older versions wrote. */
  dispatchAtOnce: Schema.optional(Schema.Boolean),
})

export const InFlightSchema = Schema.Struct({
  call: CallSchema,
  seq: counted,
  submittedAt: Schema.Int,
  attempts: counted,
  grantedAt: Schema.Int,
  stage: Schema.Literals(stages),
  grant: Schema.String,
  preempted: Schema.Boolean,
  borrowed: Schema.Boolean,
  paced: Schema.Boolean,
})

const isCount = (value: unknown): boolean => Number.isSafeInteger(value) && (value as number) >= 0
const isText = (value: unknown): boolean => typeof value === 'string'
const isFlag = (value: unknown): boolean => typeof value === 'boolean'
const isObject = (value: unknown): value is object => typeof value === 'object' && value !== null

const fieldsOfCall = Object.keys(CallSchema.fields).length

const hasPlace = ({ call, seq, submittedAt, attempts }: Waiting | InFlight): boolean =>
  isCall(call) &&
  Object.keys(call).length === fieldsOfCall &&
  isCount(seq) &&
  Number.isSafeInteger(submittedAt) &&
  isCount(attempts)

/** Accepts the same rows as `WaitingSchema`. */
export const isWaitingRow = (row: unknown): boolean => {
  if (!isObject(row)) return false
  const { reason, urgent, waitsFor, unclaimedUntilMs, dispatchAtOnce = false } = row as Waiting
  return (
    hasPlace(row as Waiting) &&
    isText(reason) &&
    isFlag(urgent) &&
    Array.isArray(waitsFor) &&
    waitsFor.every(isText) &&
    (unclaimedUntilMs === null || Number.isSafeInteger(unclaimedUntilMs)) &&
    isFlag(dispatchAtOnce)
  )
}

/** Accepts the same rows as `InFlightSchema`. */
export const isInFlightRow = (row: unknown): boolean => {
  if (!isObject(row)) return false
  const { grantedAt, stage, grant, preempted, borrowed, paced } = row as InFlight
  return (
    hasPlace(row as InFlight) &&
    Number.isSafeInteger(grantedAt) &&
    stages.includes(stage) &&
    isText(grant) &&
    isFlag(preempted) &&
    isFlag(borrowed) &&
    isFlag(paced)
  )
}

type RowSchema = typeof WaitingSchema | typeof InFlightSchema

/** Throws `InvalidInput` that names the first bad row, its field and value. */
const checkRows = (
  name: string,
  rows: ReadonlyArray<unknown>,
  isRow: (row: unknown) => boolean,
  schema: RowSchema,
): void => {
  const index = rows.findIndex((row) => !isRow(row))
  if (index < 0) return
  const row = rows[index]
  const field = `${name}.${index}`
  const fields = Object.keys(schema.fields)
  const known = isObject(row)
    ? Object.fromEntries(Object.entries(row).filter(([key]) => fields.includes(key)))
    : row
  decodeOrThrow<unknown>(schema, field, known)
  throw new InvalidInput([{ field, expected: 'a row as this version writes it', got: JSON.stringify(row) }])
}

/** Throws `InvalidInput` unless every item of the list is a pair that begins with a text. */
export const checkPairs = (name: string, list: unknown): void => {
  const isPair = (item: unknown) => Array.isArray(item) && item.length === 2 && isText(item[0])
  if (!Array.isArray(list))
    throw new InvalidInput([{ field: name, expected: 'a list of pairs', got: String(list) }])
  const index = list.findIndex((item) => !isPair(item))
  if (index < 0) return
  const got = JSON.stringify(list[index]) ?? 'nothing'
  throw new InvalidInput([{ field: `${name}.${index}`, expected: 'a pair of a text and its value', got }])
}

/** Throws `InvalidInput` that names the first bad row. */
export const checkWaiting = (name: string, rows: ReadonlyArray<unknown>): void =>
  checkRows(name, rows, isWaitingRow, WaitingSchema)

/** Throws `InvalidInput` that names the first bad row. */
export const checkInFlight = (name: string, rows: ReadonlyArray<unknown>): void =>
  checkRows(name, rows, isInFlightRow, InFlightSchema)
