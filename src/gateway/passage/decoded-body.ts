/** A decoded copy of a request body, to be looked into: bounded, counted as it grows, and never sent. */
import { pipeline, Writable } from 'node:stream'
import { HeldBody, type HeldBytes } from './body.ts'
import type { Coding } from './codings.ts'

/** `too-large`: it unfolds beyond the bound, at any of its codings. */
export type Undecoded = 'too-large' | 'no-room' | 'damaged'

/** Calls back once. `codings` in the order in which they were applied; at least one. */
export const decodeBody = (
  body: Buffer,
  codings: ReadonlyArray<Coding>,
  { limitBytes, held }: { readonly limitBytes: number; readonly held: HeldBytes },
  done: (decoded: HeldBody | Undecoded) => void,
): void => {
  let fault: Undecoded | null = null
  const chunks: Array<Buffer> = []
  let heldBytes = 0
  const stages = codings
    .toReversed()
    .map((coding, index) => coding.strict(index === 0 ? body : Buffer.alloc(0)))
  const stop = (why: Undecoded): Error => {
    fault ??= why
    return new Error(why)
  }
  for (const stage of stages) {
    let bytes = 0
    stage.on('data', (chunk: Buffer) => {
      bytes += chunk.length
      if (bytes > limitBytes) stage.destroy(stop('too-large'))
    })
  }
  const sink = new Writable({
    write: (chunk: Buffer, _, next) => {
      if (!held.take(chunk.length)) return next(stop('no-room'))
      heldBytes += chunk.length
      chunks.push(chunk)
      next()
    },
  })
  pipeline([...stages, sink], (error) => {
    if (error == null) return done(new HeldBody(Buffer.concat(chunks), held))
    held.drop(heldBytes)
    done(fault ?? 'damaged')
  })
  stages[0]?.end(body)
}
