/** What a verb cannot do, in one line for a person. */
import { Data, Effect } from 'effect'

export class CliFailure extends Data.TaggedError('CliFailure')<{
  readonly message: string
  /** The process ends with it, [1, 255]. Default 1. */
  readonly code?: number
  /** Its line has been shown already. */
  readonly isShown?: boolean
}> {}

/** Try again later (`EX_TEMPFAIL` of sysexits.h): a supervisor should start the program again. */
export const tryAgainCode = 75

const systemErrors: Readonly<Record<string, string>> = {
  EADDRINUSE: 'is in use; stop what listens there, or choose another with --port',
  EACCES: 'is not permitted; choose a port above 1023',
  EADDRNOTAVAIL: 'is no address of this machine; choose another with --host',
  ENOTFOUND: 'is not known; choose another with --host',
}

/** One line: what failed, with the value, and what to do. Never a stack. */
export const lineOf = (error: unknown): string => {
  if (!(error instanceof Error)) return String(error)
  const { code, syscall, address, port } = error as NodeJS.ErrnoException & {
    readonly address?: string
    readonly port?: number
  }
  const known = syscall === 'listen' || syscall === 'getaddrinfo' ? systemErrors[code ?? ''] : undefined
  if (known === undefined) return error.message.replaceAll(/\s*\n\s*/g, ' ')
  return `${[address, port].filter((part) => part !== undefined).join(':') || 'the address'} ${known}`
}

export const failure = (error: unknown): CliFailure => new CliFailure({ message: lineOf(error) })

/** Does `work`, synchronous or not; what it throws becomes a line. */
export const attempt = <A>(work: () => A | PromiseLike<A>): Effect.Effect<A, CliFailure> =>
  Effect.tryPromise({ try: async () => await work(), catch: failure })
