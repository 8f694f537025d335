/** `rightofway classify [file|-]`: the evidence about capacity in a provider's answer. */
import { readFileSync } from 'node:fs'
import { Console, Effect } from 'effect'
import { Argument, Command } from 'effect/cli'
import type { ClassifiedCase } from '../evidence/index.ts'
import { attempt } from './failure.ts'
import { jsonFlag } from './flags.ts'

const file = Argument.String('file').pipe(
  Argument.withDescription('An answer, its body alone, or a JSON list of cases; - reads standard input'),
  Argument.withDefault('-'),
)

export const classifyVerb = Command.make(
  'classify',
  { file, json: jsonFlag },
  Effect.fn(function* ({ file, json }) {
    const { classifyFile } = yield* attempt(() => import('../evidence/index.ts'))
    const text = yield* attempt(() => readFileSync(file === '-' ? 0 : file, 'utf8'))
    const cases = classifyFile(parsed(text))
    const line = json ? (each: ClassifiedCase) => JSON.stringify(each) : sentence
    yield* Console.log(cases.map(line).join('\n'))
  }),
).pipe(Command.withDescription("Read what a provider's answer says about its capacity"))

/** Parses JSON. Other input, such as a pasted answer, stays text. */
const parsed = (text: string): unknown => {
  try {
    return JSON.parse(text)
  } catch {
    return text
  }
}

const sentence = ({ id, provider, kind, scope, retryable, retryAfterMs }: ClassifiedCase): string => {
  const name = [id, provider].filter(Boolean).join(' ')
  const wait = retryAfterMs === null ? 'no wait stated' : `wait ${retryAfterMs} ms`
  return `${name === '' ? '' : `${name}: `}${kind}, holds the ${scope}, ${retryable ? 'may succeed later' : 'will not succeed later'}, ${wait}`
}
