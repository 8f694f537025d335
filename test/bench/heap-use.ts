/** What a waiting call takes of the heap. */
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { openCore } from './contenders.ts'

/** Bytes of the heap per call that waits in the core, its id and its call included. */
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
