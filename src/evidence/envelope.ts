/**
 * Finds the error envelopes in an answer whose status says success. Everything else in such an answer is
 * model output, which may quote any refusal word for word and must not be read.
 */
import { isObject, type JsonObject } from './answer.ts'
import { looksLikeEvents, readEvents } from './event-text.ts'
import { readLiteral } from './literal.ts'

const jsonCapChars = 262_144
const literalCapChars = 65_536
const elementCap = 64

/**
 * Error envelopes of a body, in order. `anyText` accepts plain text: an answer without a status may be a
 * pasted sentence, and no served answer is a bare sentence.
 */
export const envelopesOf = (body: unknown, anyText: boolean): ReadonlyArray<unknown> => {
  if (typeof body === 'string') return envelopesOfText(body, anyText)
  if (Array.isArray(body))
    return body.slice(0, elementCap).concat(body.slice(elementCap).slice(-8)).flatMap(envelopesOfObject)
  return envelopesOfObject(body)
}

/** Whether an answer that says success holds an error all the same: an envelope, or MiniMax's status beside no output. */
export const errorsIn = (body: unknown): boolean => {
  const status = isObject(body) && isObject(body['base_resp']) ? body['base_resp']['status_code'] : 0
  return (typeof status === 'number' && status !== 0) || envelopesOf(body, false).length > 0
}

const envelopesOfText = (body: string, anyText: boolean): ReadonlyArray<unknown> => {
  const start = body.slice(0, 512).trimStart()
  if (looksLikeEvents(start)) return readEvents(body).flatMap(envelopesOfEvent)
  if (/^[[{]/.test(start)) return envelopesOf(parseJson(body.trim()), false)
  const frame = /:exception-type[^A-Za-z]{1,8}([A-Za-z]{3,60})/.exec(body.slice(-literalCapChars))
  if (frame?.[1] !== undefined) return [{ code: frame[1] }, frameMessage(body, frame[0])]
  return anyText && start !== '' ? [body] : []
}

const envelopesOfEvent = ({ name, data }: { name: string; data: string }): ReadonlyArray<unknown> => {
  const named = /^error$|exception$/i.test(name)
  const codes = named && name !== 'error' ? [{ code: name }] : []
  // An ordinary delta has no `error` key and is never parsed: inside a string its quotes are escaped.
  if (!named && !/"error"|exception"|response\.failed|"(?:status_?|error_?|err_?)?code"/i.test(data))
    return []
  const value = parseJson(data)
  if (value === null) return named && data !== '' ? [...codes, data] : codes
  return named ? [...codes, value] : envelopesOf(value, false)
}

const envelopesOfObject = (body: unknown): ReadonlyArray<unknown> => {
  if (!isObject(body)) return []
  if (body['type'] === 'error' || body['object'] === 'error') return [body]
  const response = body['response']
  if (isObject(response) && isProblem(response['error'])) return [errorPart(response)]
  if (isProblem(body['error'])) return [errorPart(body)]
  if (body['success'] === false && typeof body['errors'] === 'object') return [errorPart(body)]
  if ((body['status'] === 'error' || body['status'] === 'failed') && isProblem(body['message']))
    return [errorPart(body)]
  const stated = statedFault(body)
  return stated === null ? faultsIn(body) : [stated]
}

/** Keys of a status part beside the output, as MiniMax, Spark and Tencent's old interfaces have it. */
const statusParts = ['base_resp', 'baseResp', 'header', 'status', 'result'] as const
const numberKeys = [
  'status_code',
  'statusCode',
  'error_code',
  'errorCode',
  'err_code',
  'errcode',
  'code',
] as const
const sentenceKeys = [
  'status_msg',
  'statusMsg',
  'error_msg',
  'errorMsg',
  'err_msg',
  'errmsg',
  'message',
  'msg',
  'detail',
] as const
/** An answer that has any of these was served: a number beside it is the output's own. */
const outputKeys = [
  'choices',
  'content',
  'output',
  'candidates',
  'data',
  'embeddings',
  'results',
  'usage',
  'text',
] as const

/**
 * A refusal that a success states in a number: `base_resp.status_code`, `error_code` with `error_msg`,
 * `Response.Error`. A part of its own name counts beside output too; a bare number only where nothing was served.
 */
const statedFault = (body: JsonObject): JsonObject | null => {
  const response = body['Response']
  if (isObject(response) && isObject(response['Error'])) return response['Error']
  for (const key of statusParts) {
    const part = body[key]
    const fault = isObject(part) ? numberedFault(part) : null
    if (fault !== null) return fault
  }
  const served = outputKeys.some((key) => hasOutput(body[key]))
  return served ? null : numberedFault(body)
}

const hasOutput = (value: unknown): boolean =>
  value !== null && value !== undefined && value !== '' && !(Array.isArray(value) && value.length === 0)

/** Both a number that is no success and a sentence: either alone may be anything. */
const numberedFault = (part: JsonObject): JsonObject | null => {
  const number = numberKeys.map((key) => part[key]).find((value) => value !== undefined)
  const sentence = sentenceKeys
    .map((key) => part[key])
    .find((value) => typeof value === 'string' && value !== '')
  if (sentence === undefined || !isFaultNumber(number)) return null
  return { code: String(number).slice(0, 120), message: sentence, status_msg: part['status_msg'] }
}

const isFaultNumber = (value: unknown): boolean =>
  typeof value === 'number'
    ? Number.isInteger(value) && value !== 0 && value !== 1 && (value < 200 || value > 299)
    : typeof value === 'string' &&
      (/^[3-9]\d{2}$|^\d{4,8}$/.test(value) || /^[A-Z][A-Za-z]+(?:\.[A-Z][A-Za-z]+)*$/.test(value)) &&
      !/^(?:success|ok|succeeded)$/i.test(value)

/** Errors that an answer carries beside its output: in a choice, an event frame or an exception member. */
export const faultsIn = (body: JsonObject): ReadonlyArray<unknown> => {
  const choices = Array.isArray(body['choices']) ? body['choices'].slice(0, 4) : []
  const failed = choices
    .filter((each) => isObject(each) && isProblem(each['error']))
    .map((each) => each.error)
  return [...failed, ...framesOf(body), ...exceptionsOf(body)]
}

const isProblem = (error: unknown): boolean => {
  return (
    isObject(error) ||
    (typeof error === 'string' && error !== '') ||
    (Array.isArray(error) && error.length > 0)
  )
}

/** The keys that belong to the error, in a body that also has others. */
const errorPart = (body: JsonObject): JsonObject => {
  const keys = [
    'error',
    'errors',
    'raw',
    'code',
    'type',
    'error_type',
    'message',
    'metadata',
    'details',
  ] as const
  return Object.fromEntries(keys.filter((key) => body[key] != null).map((key) => [key, body[key]]))
}

/** Decoded frames of Amazon's binary event stream, each with its headers and payload. */
const framesOf = (body: JsonObject): ReadonlyArray<unknown> => {
  const frames = body['eventstream'] ?? body['frames']
  if (!Array.isArray(frames)) return []
  return frames.slice(-elementCap).flatMap((frame) => {
    const headers = isObject(frame) && isObject(frame['headers']) ? frame['headers'] : null
    const name = headers?.[':exception-type'] ?? headers?.[':error-code']
    return typeof name === 'string' ? [{ code: name, payload: (frame as JsonObject)['payload'] }] : []
  })
}

/** The SDK's union of stream events: `{ throttlingException: { message } }`. */
const exceptionsOf = (body: JsonObject): ReadonlyArray<unknown> => {
  const found: unknown[] = []
  let keys = 0
  for (const key in body) {
    keys += 1
    if (keys > 32) break
    if (/^[a-z][A-Za-z]{3,50}Exception$/.test(key) && isObject(body[key]))
      found.push({ code: key }, body[key])
  }
  return found
}

const frameMessage = (body: string, marker: string): unknown => {
  const opensAt = body.indexOf('{', body.lastIndexOf(marker))
  return opensAt < 0 ? null : (readLiteral(body.slice(opensAt, opensAt + literalCapChars), 0)?.value ?? null)
}

const parseJson = (text: string): unknown => {
  if (text.length > jsonCapChars) return readLiteral(text.slice(0, literalCapChars), 0)?.value ?? null
  try {
    return JSON.parse(text)
  } catch {
    return /^\s*[[{]/.test(text) ? (readLiteral(text, text.search(/[[{]/))?.value ?? null) : null
  }
}
