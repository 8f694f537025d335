import { minuteMs } from './rule.ts'

/**
 * A token bucket in exact integers. A part is 1/60,000 of a token, so `perMinute` tokens per minute
 * are `perMinute` parts per millisecond: with whole limits and whole milliseconds no rounding can
 * make a stated wait insufficient.
 */
export interface Bucket {
  /** Parts held at `refilledAtMs`. Negative after a charge that came too late to refuse. */
  readonly levelParts: number
  readonly refilledAtMs: number
}

export interface BucketShape {
  /** Refill, units per minute. */
  readonly perMinute: number
  /** Most that it holds, units. */
  readonly capacity: number
}

export const fullBucket = (shape: BucketShape): Bucket => ({
  levelParts: shape.capacity * minuteMs,
  refilledAtMs: 0,
})

/** Parts held at `atMs`, at most the capacity. */
export const levelPartsAt = (shape: BucketShape, bucket: Bucket, atMs: number): number =>
  Math.min(
    shape.capacity * minuteMs,
    bucket.levelParts + Math.max(0, atMs - bucket.refilledAtMs) * shape.perMinute,
  )

/** Whole units held at `atMs`, rounded down; negative in debt. */
export const levelAt = (shape: BucketShape, bucket: Bucket, atMs: number): number =>
  Math.floor(levelPartsAt(shape, bucket, atMs) / minuteMs)

/** Takes `units` (negative gives back); the level may go below zero. */
export const draw = (shape: BucketShape, bucket: Bucket, atMs: number, units: number): Bucket => ({
  levelParts: Math.min(shape.capacity * minuteMs, levelPartsAt(shape, bucket, atMs) - units * minuteMs),
  refilledAtMs: Math.max(atMs, bucket.refilledAtMs),
})

/** When the bucket holds `units` if no other units are taken; null when it never can. */
export const holdsAtMs = (shape: BucketShape, bucket: Bucket, atMs: number, units: number): number | null => {
  if (units > shape.capacity) return null
  const missingParts = units * minuteMs - levelPartsAt(shape, bucket, atMs)
  return missingParts <= 0 ? atMs : atMs + Math.ceil(missingParts / shape.perMinute)
}

/** When the bucket is full if no units are taken. */
export const fullAtMs = (shape: BucketShape, bucket: Bucket, atMs: number): number =>
  holdsAtMs(shape, bucket, atMs, shape.capacity) ?? atMs
