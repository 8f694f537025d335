/**
 * The program's description of its calls: the lane, the turn, the principal. The flow of execution carries it
 * to the place where the calls are sent. A client below an SDK sees only a request, without this description.
 */
import { AsyncLocalStorage } from 'node:async_hooks'
import type { CallRequest } from '../host/request.ts'

/** A description without the fields of one dispatch: its id, its signal, its size. */
export type CallContext = Omit<
  CallRequest,
  'id' | 'signal' | 'inputTokens' | 'outputTokens' | 'maxOutputTokens'
>

const storage = new AsyncLocalStorage<CallContext>()

/** The description that surrounds this code; empty when there is none. */
export const currentCall = (): CallContext => storage.getStore() ?? {}

/**
 * Runs `fn`, whose calls are described by `call`. Fields that `call` leaves out come from the surrounding
 * description.
 */
export const withCall = <A>(call: CallContext, fn: () => A): A =>
  storage.run({ ...currentCall(), ...call }, fn)
