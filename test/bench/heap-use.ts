/** The heap that a waiting call uses. */
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { openCore } from './contenders.ts'

/** Bytes of the heap per call that waits in the core, with its id and its call. */
export const bytesPerWaitingCall = (calls: number): number => {
  setFlagsFromString('--expose-gc')
  const collect = runInNewContext('gc') as () => void
  collect()
  const before = process.memoryUsage().heapUsed
  const session = openCore(calls)
  collect()
  const bytes = (process.memoryUsage().heapUsed - before) / calls
  void session.close()
  return bytes
}
