import { memberAt } from '../identity/members.ts'

/**
 * `body` with the rank as its member `priority`, for servers that schedule by it (vLLM with
 * `--scheduling-policy priority`: lower goes first). Unchanged when the client has set one itself,
 * or when the body is no JSON object.
 */
export const withPriorityMember = (body: Buffer, rank: number): Buffer => {
  const open = body.indexOf('{')
  const isObject = open >= 0 && memberAt(body, 'model') !== null
  if (!isObject || memberAt(body, 'priority') !== null) return body
  return Buffer.concat([
    body.subarray(0, open + 1),
    Buffer.from(`"priority":${rank},`),
    body.subarray(open + 1),
  ])
}
