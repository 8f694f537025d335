/** Reads what providers say about capacity: refusals, limit headers, usage, live streams. Pure functions. */
export type { Evidence, EvidenceFacts, EvidenceKind, EvidenceScope } from '../../machines/evidence.ts'
export type { HeaderBag, HeadersLike, ProviderAnswer } from './answer.ts'
export { classify } from './classify.ts'
export { type ClassifiedCase, classifyFile } from './corpus.ts'
export { eventCapBytes } from './event-bytes.ts'
export { type Limit, type LimitDimension, readLimits } from './headers.ts'
export { makeStreamReader, type StreamHead, type StreamReader } from './stream.ts'
export { readUsage, type Usage } from './usage.ts'
