/** The list of verbs of the command line. */
import { classifyVerb } from './classify.ts'
import { configVerb } from './config.ts'
import { demoVerb } from './demo.ts'
import { explainVerb } from './explain.ts'
import { inspectVerb } from './inspect.ts'
import { journalVerb } from './journal.ts'
import { releaseVerb } from './release.ts'
import { replayVerb } from './replay.ts'
import { serveVerb } from './serve.ts'
import { simulateVerb } from './simulate.ts'
import { statusVerb } from './status.ts'
import { tokenVerb } from './token.ts'
import { tuneVerb } from './tune.ts'

/**
 * The verbs. A new verb is a file beside this one and a name in this list. A verb imports its parts when it runs,
 * so that no verb pays for another.
 */
export const verbs = [
  serveVerb,
  demoVerb,
  simulateVerb,
  tuneVerb,
  statusVerb,
  explainVerb,
  inspectVerb,
  replayVerb,
  releaseVerb,
  journalVerb,
  tokenVerb,
  classifyVerb,
  configVerb,
] as const
