/** Rows that are shipped: the agents that say themselves which of their calls a person waits for, and shared limits. */
import type { ClassifyRule, classifyPresets, ScopeRule, scopePresets } from './schema.ts'

const session = 'claude-code {header:x-claude-code-session-id}'
const ofSession = { principal: session, turn: session }

/**
 * Claude Code names its session on every call and the agent on those of subagents; it names no turn, so the session
 * stands for it.
 */
const claudeCode: ReadonlyArray<ClassifyRule> = [
  {
    name: 'background',
    when: { header: { 'x-claude-code-session-id': '*', 'x-app': 'cli-bg' } },
    class: 'background_ingestion',
    principal: session,
  },
  {
    name: 'no-compaction',
    when: {
      header: {
        'x-claude-code-session-id': '*',
        'x-claude-code-compaction': 'false',
        'x-claude-code-agent-id': null,
      },
    },
    class: 'interactive',
    ...ofSession,
  },
  {
    name: 'compaction',
    when: { header: { 'x-claude-code-session-id': '*', 'x-claude-code-compaction': '*' } },
    class: 'background_ingestion',
    principal: session,
  },
  ...['background*', '*compact*'].map((marks) => ({
    name: 'background-request',
    when: { header: { 'x-claude-code-session-id': '*', 'x-claude-code-request-class': marks } },
    class: 'background_ingestion' as const,
    principal: session,
  })),
  ...['x-claude-code-agent-id', 'x-claude-code-parent-agent-id'].map((agent) => ({
    name: 'subagent',
    when: { header: { 'x-claude-code-session-id': '*', [agent]: '*' } },
    class: 'orchestration' as const,
    ...ofSession,
  })),
  {
    name: 'person',
    when: { header: { 'x-claude-code-session-id': '*' } },
    class: 'interactive',
    ...ofSession,
  },
]

const metadata = 'x-codex-turn-metadata'
const codexSession = `codex {header:${metadata}#/session_id|header:session-id|header:session_id}`
const codexTurn = `codex {header:${metadata}#/root_turn_id|header:${metadata}#/turn_id}`

const codexRow = (
  name: string,
  when: NonNullable<ClassifyRule['when']>,
  rest: Omit<ClassifyRule, 'name' | 'when' | 'principal'>,
): ClassifyRule => ({ name, when, principal: codexSession, ...rest })

const codexMarks = (
  name: string,
  marks: ReadonlyArray<readonly [string, string]>,
  rest: Omit<ClassifyRule, 'name' | 'when' | 'principal'>,
): ReadonlyArray<ClassifyRule> =>
  marks.map(([header, pattern]) => codexRow(name, { header: { [header]: pattern } }, rest))

/** Codex describes the turn of each call in one header. Its other values, names of folders among them, are not read. */
const codex: ReadonlyArray<ClassifyRule> = [
  ...codexMarks(
    'background',
    [
      [`${metadata}#/request_kind`, '*compact*'],
      [`${metadata}#/request_kind`, '*memor*'],
      [`${metadata}#/thread_source`, '*memor*'],
      ['x-openai-subagent', '*compact*'],
      ['x-openai-subagent', '*memor*'],
      ['x-openai-memgen-request', '*'],
    ],
    { class: 'background_ingestion' },
  ),
  codexRow(
    'background',
    { path: '*/responses/compact', header: { originator: 'codex*' } },
    { class: 'background_ingestion' },
  ),
  ...codexMarks(
    'subagent',
    [
      [`${metadata}#/agent_name`, '/root/*'],
      [`${metadata}#/thread_source`, '*agent*'],
      ['x-openai-subagent', '*'],
      ['x-codex-parent-thread-id', '*'],
    ],
    { class: 'orchestration', turn: codexTurn },
  ),
  codexRow(
    'person',
    { header: { [`${metadata}#/session_id`]: '*' } },
    { class: 'interactive', turn: codexTurn },
  ),
]

/** Models that agents use beside their work, for titles and summaries. A person may have chosen one, so it is no default. */
const smallFastModel: ReadonlyArray<ClassifyRule> = ['*haiku*', '*-mini*', '*-nano*', '*flash-lite*'].map(
  (model) => ({ name: model, when: { model }, lane: 'auxiliary' as const }),
)

export const classifyRules: Readonly<Record<(typeof classifyPresets)[number], ReadonlyArray<ClassifyRule>>> =
  {
    'claude-code': claudeCode,
    codex,
    'small-fast-model': smallFastModel,
  }

/** Anthropic's own API has one limit for all versions of a class. */
const anthropicClasses: ReadonlyArray<ScopeRule> = ['opus-4', 'sonnet-4'].map((name) => ({
  name,
  when: { provider: 'anthropic', model: `*claude-${name}*` },
  model: `claude-${name}`,
}))

const modelFamilies: ReadonlyArray<ScopeRule> = [
  { name: 'fast', when: { body: { '/speed': 'fast' } }, limit: 'fast' },
  ...anthropicClasses,
  ...['anthropic', 'openai'].map((provider) => ({ name: 'family', when: { provider }, model: '{family}' })),
]

/** Credentials that change every few hours, under an account that says its name. */
const accounts: ReadonlyArray<ScopeRule> = ['chatgpt-account-id', 'x-goog-user-project'].map((header) => ({
  name: header,
  when: { header: { [header]: '*', authorization: 'Bearer *' } },
  credential: `{header:${header}}`,
}))

export const scopeRules: Readonly<Record<(typeof scopePresets)[number], ReadonlyArray<ScopeRule>>> = {
  'model-families': modelFamilies,
  accounts,
}

export const defaultClassify = [{ preset: 'claude-code' }, { preset: 'codex' }] as const
export const defaultScopes = [{ preset: 'model-families' }, { preset: 'accounts' }] as const
