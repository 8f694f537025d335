import { expect, it } from 'vitest'
import { withPriorityMember } from '../../../src/gateway/calls/body-priority.ts'

it.each([
  ['a plain call', '{"model":"m","messages":[]}', '{"priority":3,"model":"m","messages":[]}'],
  ['one that says its own', '{"model":"m","priority":7}', '{"model":"m","priority":7}'],
  [
    'one whose content mentions it',
    '{"model":"m","x":{"priority":1}}',
    '{"priority":3,"model":"m","x":{"priority":1}}',
  ],
  ['what is no object', '["model"]', '["model"]'],
])('the rank goes into %s', (_, body, sent) => {
  expect(withPriorityMember(Buffer.from(body), 3).toString()).toBe(sent)
})
