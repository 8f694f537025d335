/**
 * What a program says of the calls that it makes, carried by the flow of execution to where they are
 * sent: the lane, the turn, who asks. A client below an SDK sees a request, and nothing of this.
 */
import { AsyncLocalStorage } from 'node:async_hooks'
import type { CallRequest } from '../host/request.ts'

/** Everything but what belongs to one dispatch: its id, its signal, its size. */
export type CallContext = Omit<
  CallRequest,
  'id' | 'signal' | 'inputTokens' | 'outputTokens' | 'maxOutputTokens'
>

const storage = new AsyncLocalStorage<CallContext>()

/** What was said around this code; empty when nothing was. */
export const currentCall = (): CallContext => storage.getStore() ?? {}

/** Runs `fn`, whose calls are what `call` says; what it leaves out, the code around it has said. */
export const withCall = <A>(call: CallContext, fn: () => A): A =>
  storage.run({ ...currentCall(), ...call }, fn)
