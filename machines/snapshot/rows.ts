/**
 * Checks the lists of a snapshot; the longest has a row for every waiting call. The checks are plain
 * comparisons, a hundred times faster than a schema. When a comparison fails, the schema names the fault. A
 * law of the tests shows that both agree.
 */
import { Schema } from 'effect'
import type { Cost } from '../limits/budget.ts'
import { CallSchema, isCall } from '../model/call.ts'
import { decodeOrThrow, InvalidInput, integer, maxSafe } from '../model/invalid.ts'
import type { InFlight, TakenTurn, Waiting } from '../state/calls.ts'

const counted = integer(0, maxSafe)
const stages = ['admitted', 'dispatched', 'accepted'] as const

export const WaitingSchema = Schema.Struct({
  call: CallSchema,
  seq: counted,
  submittedAt: Schema.Int,
  attempts: counted,
  /** Not there in what older versions wrote. */
  triedAtMs: Schema.optional(counted),
  reason: Schema.String,
  urgent: Schema.Boolean,
  waitsFor: Schema.Array(Schema.String),
  unclaimedUntilMs: Schema.NullOr(Schema.Int),
  /** Missing in rows that older versions wrote. */
  dispatchAtOnce: Schema.optional(Schema.Boolean),
  ofBegunTurn: Schema.optional(Schema.Literal(true)),
  sizeRefusals: Schema.optional(counted),
  heldFromMs: Schema.optional(Schema.Finite),
  inheritedRank: Schema.optional(Schema.NullOr(integer(0, 3))),
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
  /** Not there in what older versions wrote. */
  taken: Schema.optional(
    Schema.Struct({ requests: counted, inputTokens: Schema.Finite, outputTokens: Schema.Finite }),
  ),
  sizeRefusals: Schema.optional(counted),
  heldFromMs: Schema.optional(Schema.Finite),
  turn: Schema.optional(
    Schema.NullOr(
      Schema.Struct({
        place: Schema.NullOr(Schema.Int),
        tag: Schema.optional(Schema.Finite),
        endTag: Schema.optional(Schema.Finite),
        servedAt: Schema.Finite,
        heldFromMs: Schema.Finite,
      }),
    ),
  ),
})

const isCount = (value: unknown): boolean => Number.isSafeInteger(value) && (value as number) >= 0
const isText = (value: unknown): boolean => typeof value === 'string'
const isReading = (value: unknown): boolean => value === undefined || Number.isFinite(value)
const isTurn = (value: unknown): boolean => {
  if (value === undefined || value === null) return true
  if (!isObject(value)) return false
  const { place, tag, endTag, servedAt, heldFromMs } = value as TakenTurn
  return (
    (place === null || Number.isSafeInteger(place)) &&
    isReading(tag) &&
    isReading(endTag) &&
    [servedAt, heldFromMs].every(Number.isFinite)
  )
}
const isCost = (value: unknown): boolean => {
  if (value === undefined) return true
  if (!isObject(value)) return false
  const { requests, inputTokens, outputTokens } = value as Cost
  return isCount(requests) && Number.isFinite(inputTokens) && Number.isFinite(outputTokens)
}
const isFlag = (value: unknown): boolean => typeof value === 'boolean'
const isObject = (value: unknown): value is object => typeof value === 'object' && value !== null

/** `maxOutputTokens` is left out where a call states none. */
const fieldsOfCall = Object.keys(CallSchema.fields).length - 1

const hasPlace = ({ call, seq, submittedAt, attempts, sizeRefusals = 0 }: Waiting | InFlight): boolean =>
  isCall(call) &&
  Object.keys(call).length === fieldsOfCall + (call.maxOutputTokens === undefined ? 0 : 1) &&
  isCount(seq) &&
  Number.isSafeInteger(submittedAt) &&
  isCount(attempts) &&
  isCount(sizeRefusals)

/** Accepts the same rows as `WaitingSchema`. */
export const isWaitingRow = (row: unknown): boolean => {
  if (!isObject(row)) return false
  const {
    reason,
    urgent,
    waitsFor,
    unclaimedUntilMs,
    dispatchAtOnce = false,
    heldFromMs,
    inheritedRank = null,
    triedAtMs = 0,
    ofBegunTurn = true,
  } = row as Waiting
  return (
    hasPlace(row as Waiting) &&
    isText(reason) &&
    isCount(triedAtMs) &&
    isFlag(urgent) &&
    Array.isArray(waitsFor) &&
    waitsFor.every(isText) &&
    (unclaimedUntilMs === null || Number.isSafeInteger(unclaimedUntilMs)) &&
    isFlag(dispatchAtOnce) &&
    ofBegunTurn === true &&
    isReading(heldFromMs) &&
    (inheritedRank === null || [0, 1, 2, 3].includes(inheritedRank))
  )
}

/** Accepts the same rows as `InFlightSchema`. */
export const isInFlightRow = (row: unknown): boolean => {
  if (!isObject(row)) return false
  const { grantedAt, stage, grant, preempted, borrowed, paced, taken, heldFromMs, turn } = row as InFlight
  return (
    hasPlace(row as InFlight) &&
    Number.isSafeInteger(grantedAt) &&
    stages.includes(stage) &&
    isText(grant) &&
    isFlag(preempted) &&
    isFlag(borrowed) &&
    isFlag(paced) &&
    isCost(taken) &&
    isReading(heldFromMs) &&
    isTurn(turn)
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
