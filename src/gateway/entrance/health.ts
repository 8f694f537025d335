/** The answer of `/healthz`: whether the gateway admits calls, and the size of its journal. */
import type { LaneHost } from '../../host/host.ts'
import { kernelOf } from '../../host/internal.ts'
import type { JournalUsage } from '../../journal/journal.ts'

/** A write-ahead log of this size is worth a word while a reader pins it. The journal moves it at a few MiB. */
const largeWalBytes = 32 * 1024 * 1024

export interface HealthAnswer {
  readonly status: 'ok' | 'closing'
  /** Left out while the journal cannot be asked. `oldestAt`: epoch milliseconds. */
  readonly journal?: JournalUsage
  /** Sentences for the operator; nothing is refused because of them. */
  readonly warnings: ReadonlyArray<string>
}

const mebibytes = (bytes: number): string => `${Math.round(bytes / 1024 / 1024)} MiB`

const warningsOf = ({ walPinned, walBytes }: JournalUsage): ReadonlyArray<string> =>
  walPinned && walBytes >= largeWalBytes
    ? [
        `a reader of the journal that has not ended keeps ${mebibytes(walBytes)} of its write-ahead log on the disk, and ` +
          'more with every call: end the reader (an inspector of the file, a backup, a debugger)',
      ]
    : []

export class Health {
  readonly #host: LaneHost

  constructor(host: LaneHost) {
    this.#host = host
  }

  async answer(isClosing: boolean): Promise<HealthAnswer> {
    const usage = await this.#journalUsage()
    const status = isClosing ? 'closing' : 'ok'
    if (usage === null) return { status, warnings: [] }
    return { status, journal: usage, warnings: warningsOf(usage) }
  }

  async #journalUsage(): Promise<JournalUsage | null> {
    try {
      return await kernelOf(this.#host).journal.usage()
    } catch {
      // A journal that has failed or is closing: the status says so already.
      return null
    }
  }
}
