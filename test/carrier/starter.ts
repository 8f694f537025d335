/** Says which class it was started with: a child process on its standard output, a worker thread by message. */
import { parentPort, workerData } from 'node:worker_threads'
import { carry, withCarried } from '../../src/carrier/carry.ts'
import { carrierCounters } from '../../src/carrier/counters.ts'
import { currentPriority } from '../../src/carrier/with-priority.ts'

const report = {
  started: currentPriority(),
  given: withCarried(workerData, currentPriority),
  unknown: carrierCounters().unknownPriorities,
}
if (parentPort === null) process.stdout.write(JSON.stringify(report))
else {
  const port = parentPort
  port.postMessage(report)
  port.on('message', (carried: unknown) =>
    withCarried(carried, () =>
      setImmediate(() => port.postMessage({ seen: currentPriority(), back: carry() })),
    ),
  )
}
