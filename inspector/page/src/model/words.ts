/** Formats numbers, times and names for the page. */
import type { ScopeState } from '../../../../machines/index.ts'
import type { Alarm } from '../../../../src/host/status.ts'

/** 14:03:07.250, in UTC as `rightofway explain` writes it. */
export const clockText = (at: number): string => new Date(at).toISOString().slice(11, 23)

export const dateText = (at: number): string => new Date(at).toISOString().slice(0, 10)

export const durationText = (ms: number): string => {
  const size = Math.abs(ms)
  if (size < 1_000) return `${Math.round(ms)} ms`
  if (size < 60_000) return `${(ms / 1_000).toFixed(size < 10_000 ? 1 : 0)} s`
  const minutes = Math.floor(size / 60_000)
  const seconds = Math.floor((size % 60_000) / 1_000)
  if (minutes < 60) return `${minutes} min ${seconds} s`
  return `${Math.floor(minutes / 60)} h ${minutes % 60} min`
}

const grouped = new Intl.NumberFormat('en-US')

export const countText = (count: number): string => grouped.format(count)

/** 181k, 1.2M: for axes and cells. */
export const shortCount = (count: number): string => {
  if (count < 10_000) return grouped.format(count)
  if (count < 1_000_000) return `${Math.round(count / 1_000)}k`
  return `${(count / 1_000_000).toFixed(count < 10_000_000 ? 1 : 0)}M`
}

/** Names of the states' colours in the style sheet. */
export const stateTokens = {
  idle: 'state-idle',
  primaryPending: 'state-pending',
  'quietRamp.quiet': 'state-quiet',
  'quietRamp.admitting': 'state-admitting',
  'quietRamp.active': 'state-active',
  auxiliaryDraining: 'state-draining',
  settled: 'state-settled',
} as const satisfies Readonly<Record<ScopeState, string>>

/** The meaning of each state, in a few words. */
export const stateWords: Readonly<Record<ScopeState, string>> = {
  idle: 'no episode; the gate is open',
  primaryPending: 'a primary waits for auxiliaries in flight',
  'quietRamp.quiet': 'kept quiet until the head primary is tried',
  'quietRamp.admitting': 'primaries are dispatched, or wait for a place',
  'quietRamp.active': 'every primary is being answered',
  auxiliaryDraining: 'the backlog is released, metered',
  settled: 'the episode is over; the gate is open',
}

export const alarmText = ({ kind, amount }: Alarm): string => {
  switch (kind) {
    case 'provider-wait':
      return `provider asked to wait, ${durationText(amount)} left`
    case 'primary-waits':
      return `a primary waits for ${durationText(amount)}`
    case 'auxiliary-starves':
      return `an auxiliary waits for ${durationText(amount)}`
    case 'backing-off':
      return `backing off, ${durationText(amount)} left`
    case 'outcomes-unknown':
      return `${countText(amount)} unknown outcome${amount === 1 ? '' : 's'}`
    case 'calls-expired':
      return `${countText(amount)} expired`
    case 'calls-rejected':
      return `${countText(amount)} rejected`
  }
}

/** Alarms about the present; the other kinds count since the beginning. */
export const isPressing = ({ kind }: Alarm): boolean =>
  kind === 'provider-wait' ||
  kind === 'primary-waits' ||
  kind === 'auxiliary-starves' ||
  kind === 'backing-off'

/** `provider/fingerprint/model` with its parts apart; a free name stays whole. */
export const scopeParts = (scope: string): { readonly title: string; readonly detail: string | null } => {
  const parts = scope.split('/')
  if (parts.length !== 3) return { title: scope, detail: null }
  const [provider, credential, model] = parts
  return {
    title: model === '*' ? `${provider}, all models` : `${model}`,
    detail: `${provider} · ${credential}`,
  }
}
