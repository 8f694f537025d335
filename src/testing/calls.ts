/** Calls for tests, with the defaults that a host gives them. */
import type { Call } from '../../machines/index.ts'
import { noAmbient } from '../carrier/ambient.ts'
import { type CallRequest, callOf } from '../host/request.ts'

/** A call with an id. Fields that are left out are as for `run` and `admit`. */
export type TestCall = Omit<CallRequest, 'signal'> & { readonly id: string }

/** Builds a call. Throws `InvalidInput` with field, range and value. */
export const buildCall = (request: TestCall): Call => callOf(request, 'test', noAmbient)
