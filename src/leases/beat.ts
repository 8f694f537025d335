/** Keeps one record in force while a lease is held. */
import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import type { Clock } from '../clock.ts'
import { newRecordName, writeRecord } from './record.ts'

export interface BeatOptions {
  readonly folder: string
  readonly clock: Clock
  readonly ttlMs: number
  readonly heartbeatMs: number
  /** Names of this process's records; kept up to date. */
  readonly own: Set<string>
  readonly failed: (error: unknown) => void
}

/**
 * Lives from the first holder to the last. A later holder has a new beat and a new record, so an old beat
 * cannot revive.
 */
export class Beat {
  readonly #options: BeatOptions
  readonly #first: Promise<void>
  #name = newRecordName()
  #expiresAtMs = Number.POSITIVE_INFINITY
  #stopped = false
  #cancel: () => void = () => {}
  #writing: Promise<void>

  constructor(options: BeatOptions) {
    this.#options = options
    options.own.add(this.#name)
    this.#first = this.#write()
    this.#writing = this.#first
  }

  /** Resolves when other processes can see the record; rejects when it could not be written. */
  get published(): Promise<void> {
    return this.#first
  }

  /** After this call no write becomes visible. Resolves when the record is gone. */
  async stop(): Promise<void> {
    this.#stopped = true
    this.#cancel()
    await this.#writing.catch(() => {})
    await this.#remove(this.#name)
  }

  async #write(): Promise<void> {
    const { folder, clock, ttlMs, heartbeatMs, own, failed } = this.#options
    const nowMs = clock.now()
    // Other processes may sweep an expired record, so a late heartbeat takes a new name. The sweep leaves an
    // expired record alone for a while, so it cannot remove a renewed one.
    if (nowMs >= this.#expiresAtMs) {
      await this.#remove(this.#name)
      this.#name = newRecordName()
      own.add(this.#name)
    }
    this.#expiresAtMs = nowMs + ttlMs
    try {
      await writeRecord(folder, {
        name: this.#name,
        expiresAtMs: this.#expiresAtMs,
        isWanted: () => !this.#stopped,
      })
    } catch (error) {
      failed(error)
      throw error
    } finally {
      if (!this.#stopped) {
        this.#cancel = clock.after(nowMs + heartbeatMs - clock.now(), () => {
          this.#writing = this.#write()
          this.#writing.catch(() => {})
        })
      }
    }
  }

  async #remove(name: string): Promise<void> {
    await rm(join(this.#options.folder, name), { force: true }).catch(this.#options.failed)
    this.#options.own.delete(name)
  }
}
