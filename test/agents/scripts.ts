/** What the scripted providers answer: one tool call of an agent, then words. */
import { type Json, type Script, sendEvents } from './provider.ts'

const objects = (value: unknown): ReadonlyArray<Json> => (Array.isArray(value) ? value : [])

/** The first call that may start a subagent starts one; every other is answered `Hello.`. */
export const messagesScript = (): Script => {
  let isDelegated = false
  return ({ model, tools }, response, number) => {
    const tool = objects(tools).find(({ name }) => name === 'Task' || name === 'Agent')
    const delegates = tool !== undefined && !isDelegated
    if (delegates) isDelegated = true
    const input = { description: 'greet', prompt: 'Reply with one word.', subagent_type: 'general-purpose' }
    const [block, delta] = delegates
      ? [
          { type: 'tool_use', id: `toolu_${number}`, name: tool['name'], input: {} },
          { type: 'input_json_delta', partial_json: JSON.stringify(input) },
        ]
      : [
          { type: 'text', text: '' },
          { type: 'text_delta', text: 'Hello.' },
        ]
    const message = { id: `msg_${number}`, type: 'message', role: 'assistant', model, content: [] }
    const open = { stop_reason: null, stop_sequence: null, usage: { input_tokens: 9_000, output_tokens: 1 } }
    sendEvents(response, [
      { type: 'message_start', message: { ...message, ...open } },
      { type: 'content_block_start', index: 0, content_block: block },
      { type: 'content_block_delta', index: 0, delta },
      { type: 'content_block_stop', index: 0 },
      {
        type: 'message_delta',
        delta: { stop_reason: delegates ? 'tool_use' : 'end_turn', stop_sequence: null },
        usage: { output_tokens: 5 },
      },
      { type: 'message_stop' },
    ])
  }
}

/** The first answer asks for a shell command, the next ends the turn. */
export const responsesScript = (): Script => {
  let isAsked = false
  return ({ tools }, response, number) => {
    const tool = objects(tools).find(({ name }) => name === 'exec_command' || name === 'shell')
    const asks = tool !== undefined && !isAsked
    if (asks) isAsked = true
    const command = tool?.['name'] === 'shell' ? { command: ['echo', 'one'] } : { cmd: 'echo one' }
    const id = `resp_${number}`
    const item = asks
      ? {
          ...{ type: 'function_call', id: 'fc_1', call_id: 'call_1', name: tool['name'] },
          arguments: JSON.stringify(command),
        }
      : {
          ...{ type: 'message', id: 'msg_1', role: 'assistant', status: 'completed' },
          content: [{ type: 'output_text', text: 'Hello there.', annotations: [] }],
        }
    const usage = {
      ...{ input_tokens: 9_000, output_tokens: 5, total_tokens: 9_005 },
      input_tokens_details: { cached_tokens: 0 },
      output_tokens_details: { reasoning_tokens: 0 },
    }
    sendEvents(response, [
      { type: 'response.created', response: { id, status: 'in_progress' } },
      { type: 'response.output_item.done', output_index: 0, item },
      { type: 'response.completed', response: { id, status: 'completed', output: [item], usage } },
    ])
  }
}
