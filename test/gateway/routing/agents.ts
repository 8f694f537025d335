/** Requests of agents as they are sent, composed anew: names, values and order of their headers; no key, path or person is real. */

export type Headers = Readonly<Record<string, string>>

const claudeSession = '5b7b0c5e-7f63-4a8a-9a35-0d5c6f1e2a10'

/** Claude Code. `own` adds what tells one of its calls from another. */
export const claudeCode = (own: Headers = {}, session = claudeSession): Headers => ({
  accept: 'application/json',
  'anthropic-beta': 'claude-code-20250219,interleaved-thinking-2025-05-14,context-management-2025-06-27',
  'anthropic-dangerous-direct-browser-access': 'true',
  'anthropic-version': '2023-06-01',
  'content-type': 'application/json',
  'user-agent': 'claude-cli/2.1.197 (external, sdk-cli)',
  'x-api-key': 'sk-ant-example',
  'x-app': 'cli',
  'x-claude-code-session-id': session,
  'x-stainless-lang': 'js',
  'x-stainless-retry-count': '0',
  'x-stainless-timeout': '600',
  ...own,
})

/** Its body: instructions and tools of 45 KB before the first word of the person, and the same `max_tokens` each time. */
export const claudeBody = (said: string, model = 'claude-opus-4-6'): string =>
  JSON.stringify({
    model,
    max_tokens: 64_000,
    stream: false,
    system: [{ type: 'text', text: 'You are an agent that works on code. '.repeat(1_200) }],
    messages: [{ role: 'user', content: [{ type: 'text', text: said }] }],
    metadata: { user_id: JSON.stringify({ device_id: 'd0', account_uuid: '', session_id: claudeSession }) },
  })

const turn = {
  session_id: '019e4c1a-0000-7000-8000-000000000001',
  thread_id: '019e4c1a-0000-7000-8000-000000000001',
  agent_name: '/root',
  turn_id: '019e4c1a-0000-7000-8000-0000000000t1',
  root_turn_id: '019e4c1a-0000-7000-8000-0000000000t1',
  request_kind: 'turn',
  thread_source: 'user',
  turn_trigger: 'user_input',
  workspaces: { '/home/somebody/a-private-folder': { has_changes: true } },
}

/** Codex. `own` changes what its turn says of itself. */
export const codex = (own: Readonly<Record<string, unknown>> = {}, headers: Headers = {}): Headers => ({
  accept: 'text/event-stream',
  'accept-encoding': 'zstd,gzip',
  authorization: 'Bearer sk-example',
  'content-type': 'application/json',
  originator: 'codex_exec',
  'session-id': turn.session_id,
  'thread-id': turn.thread_id,
  'user-agent': 'codex_exec/0.171.0 (Linux; x86_64)',
  'x-client-request-id': turn.thread_id,
  'x-codex-turn-metadata': JSON.stringify({ ...turn, ...own }),
  'x-codex-window-id': `${turn.thread_id}:0`,
  ...headers,
})
