/** The endpoints that are known, of the wires that are spoken. All rows are of POST: no other method makes a model work. */

/** `generating`: a model works, so it is a call. `counting`: answered in milliseconds. `bookkeeping`: no model works now. */
export const routeKinds = ['generating', 'counting', 'bookkeeping'] as const
export type RouteKind = (typeof routeKinds)[number]

/**
 * How a call is estimated. `text`: its JSON and what stands in it. `input`: the same, and the answer has no tokens of
 * output. `form`: the parts of a multipart body. `media`: the body is a recording.
 */
export const estimateRules = ['text', 'input', 'form', 'media'] as const
export type EstimateRule = (typeof estimateRules)[number]

export interface RouteRow {
  /** The end of the path. `{model}` is a segment that names the model, `{any}` another segment. */
  readonly path: string
  readonly wire: string
  readonly kind: RouteKind
  /**
   * Places of the model, the first that holds one: `{model}` of the path, `query:NAME`, a JSON pointer into the body (of a
   * form: the part of that name). A text behind `=` comes before the found name.
   */
  readonly model: ReadonlyArray<string>
  readonly estimate: EstimateRule
}

const inPath = ['{model}']
const inBody = ['/model', '/models/0']
const inResponse = [...inBody, 'prompt:=/prompt/id']
const inRun = [...inBody, 'assistant:=/assistant_id', 'assistant:=/thread/assistant_id']
const inAgent = [...inBody, 'agent:=/agent_id']

const rows = (
  wire: string,
  kind: RouteKind,
  model: ReadonlyArray<string>,
  estimate: EstimateRule,
  paths: ReadonlyArray<string>,
): ReadonlyArray<RouteRow> => paths.map((path) => ({ path, wire, kind, model, estimate }))

const calls = (
  wire: string,
  estimate: EstimateRule,
  model: ReadonlyArray<string>,
  paths: ReadonlyArray<string>,
) => rows(wire, 'generating', model, estimate, paths)
const counts = (wire: string, paths: ReadonlyArray<string>) => rows(wire, 'counting', [], 'text', paths)
const books = (wire: string, paths: ReadonlyArray<string>) => rows(wire, 'bookkeeping', [], 'text', paths)

/** Endpoints of OpenAI that make a model work; Azure serves them below `/deployments/{model}` too. */
const openaiCalls: ReadonlyArray<RouteRow> = [
  ...calls('openai', 'text', inBody, ['/chat/completions', '/completions', '/images/generations', '/videos']),
  ...calls('openai', 'text', inResponse, ['/responses', '/responses/compact']),
  ...calls('openai', 'input', inBody, ['/audio/speech', '/embeddings', '/moderations']),
  ...calls('openai', 'form', inBody, [
    '/audio/transcriptions',
    '/audio/translations',
    '/images/edits',
    '/images/variations',
  ]),
]

const azureCalls = openaiCalls.map((row) => ({
  ...row,
  path: `/deployments/{model}${row.path}`,
  wire: 'azure',
  model: inPath,
}))

const openaiOthers: ReadonlyArray<RouteRow> = [
  ...calls('openai', 'text', inRun, [
    '/threads/runs',
    '/threads/{any}/runs',
    '/threads/{any}/runs/{any}/submit_tool_outputs',
  ]),
  ...calls('openai', 'text', inBody, ['/videos/{any}/remix', '/videos/edits', '/videos/extensions']),
  ...counts('openai', ['/responses/input_tokens']),
  ...books('openai', [
    '/responses/{any}/cancel',
    '/chat/completions/{any}',
    '/threads',
    '/threads/{any}',
    '/threads/{any}/messages',
    '/threads/{any}/messages/{any}',
    '/threads/{any}/runs/{any}',
    '/threads/{any}/runs/{any}/cancel',
    '/assistants',
    '/assistants/{any}',
    '/batches',
    '/batches/{any}/cancel',
    '/files',
    '/uploads',
    '/uploads/{any}/parts',
    '/uploads/{any}/complete',
    '/uploads/{any}/cancel',
    '/realtime/sessions',
    '/realtime/transcription_sessions',
    '/realtime/client_secrets',
    '/realtime/calls',
    '/realtime/calls/{any}/accept',
    '/realtime/calls/{any}/hangup',
    '/realtime/calls/{any}/refer',
    '/realtime/calls/{any}/reject',
    '/conversations',
    '/conversations/{any}',
    '/conversations/{any}/items',
    '/fine_tuning/jobs',
    '/fine_tuning/jobs/{any}/cancel',
    '/fine_tuning/jobs/{any}/pause',
    '/fine_tuning/jobs/{any}/resume',
    '/vector_stores',
    '/vector_stores/{any}',
    '/vector_stores/{any}/search',
    '/vector_stores/{any}/files',
    '/vector_stores/{any}/files/{any}',
    '/vector_stores/{any}/file_batches',
    '/vector_stores/{any}/file_batches/{any}/cancel',
    '/containers',
    '/containers/{any}/files',
    '/evals',
    '/evals/{any}',
    '/evals/{any}/runs',
    '/evals/{any}/runs/{any}',
    '/audio/voices',
  ]),
]

const anthropicRows: ReadonlyArray<RouteRow> = [
  ...calls('anthropic', 'text', inBody, ['/messages', '/complete']),
  ...counts('anthropic', ['/messages/count_tokens']),
  ...books('anthropic', [
    '/messages/batches',
    '/messages/batches/{any}/cancel',
    // What Claude Code tells its maker of itself.
    '/api/event_logging/batch',
    '/api/claude_code/metrics',
    '/api/claude_code/{any}',
    '/api/claude_cli_feedback',
  ]),
]

/** Gemini and Vertex: the verb stands behind a colon. */
const googleRows: ReadonlyArray<RouteRow> = [
  ...counts('vertex', ['/count-tokens:rawPredict']),
  ...calls('gemini', 'text', inPath, [
    '/{model}:generateContent',
    '/{model}:streamGenerateContent',
    '/{model}:generateAnswer',
    '/{model}:bidiGenerateContent',
  ]),
  ...calls('gemini', 'input', inPath, ['/{model}:embedContent', '/{model}:batchEmbedContents']),
  ...calls('gemini', 'text', inBody, ['/interactions']),
  ...counts('gemini', ['/{model}:countTokens', '/{model}:computeTokens']),
  ...books('gemini', [
    '/{model}:batchGenerateContent',
    '/{model}:asyncBatchEmbedContent',
    '/cachedContents',
    '/files:register',
    '/upload/v1beta/files',
  ]),
  ...calls('vertex', 'text', inPath, [
    '/{model}:rawPredict',
    '/{model}:streamRawPredict',
    '/{model}:predict',
    '/{model}:serverStreamingPredict',
    '/{model}:predictLongRunning',
  ]),
  ...books('vertex', ['/{model}:fetchPredictOperation', '/batchPredictionJobs', '/tuningJobs']),
]

const bedrockRows: ReadonlyArray<RouteRow> = [
  ...calls('bedrock', 'text', inPath, [
    '/model/{model}/invoke',
    '/model/{model}/invoke-with-response-stream',
    '/model/{model}/invoke-with-bidirectional-stream',
    '/model/{model}/converse',
    '/model/{model}/converse-stream',
  ]),
  ...counts('bedrock', ['/model/{model}/count-tokens']),
  ...books('bedrock', ['/async-invoke', '/model-invocation-job', '/guardrail/{any}/version/{any}/apply']),
]

const otherRows: ReadonlyArray<RouteRow> = [
  ...calls('cohere', 'text', inBody, ['/v1/chat', '/v2/chat', '/v1/generate', '/v1/summarize']),
  ...calls('cohere', 'input', inBody, ['/v1/embed', '/v2/embed', '/rerank', '/v1/classify']),
  ...books('cohere', ['/embed-jobs', '/v1/datasets']),
  ...calls('mistral', 'text', inAgent, ['/fim/completions', '/agents/completions', '/ocr']),
  ...calls('mistral', 'input', inBody, ['/chat/moderations', '/classifications', '/chat/classifications']),
  ...books('mistral', ['/batch/jobs', '/batch/jobs/{any}/cancel']),
  ...calls('ollama', 'text', inBody, ['/api/generate', '/api/chat']),
  ...calls('ollama', 'input', inBody, ['/api/embed', '/api/embeddings']),
  ...books('ollama', ['/api/pull', '/api/push', '/api/create', '/api/copy', '/api/show', '/api/blobs/{any}']),
  ...calls('vllm', 'text', inBody, [
    '/generate',
    '/generate_stream',
    '/invocations',
    '/infill',
    '/completion',
  ]),
  ...calls('vllm', 'input', inBody, ['/pooling', '/score', '/classify', '/embed', '/embedding']),
  ...counts('vllm', ['/tokenize', '/detokenize', '/apply-template']),
  ...books('vllm', ['/load_lora_adapter', '/unload_lora_adapter']),
  ...calls('deepgram', 'media', ['query:model'], ['/v1/listen']),
  ...calls('elevenlabs', 'input', ['/model_id'], ['/text-to-speech/{any}', '/text-to-speech/{any}/stream']),
]

/** Of those that fit, the longest path counts. */
export const routeRows: ReadonlyArray<RouteRow> = [
  ...azureCalls,
  ...openaiCalls,
  ...openaiOthers,
  ...anthropicRows,
  ...googleRows,
  ...bedrockRows,
  ...otherRows,
]

/** Row of a POST that no row fits: it is admitted, since it may make a model work. */
export const unknownRow = {
  path: '*',
  wire: 'unknown',
  kind: 'generating',
  model: inBody,
  estimate: 'text',
} as const
