/** Small components that several views use. */
import type { ReactNode } from 'react'
import type { Lane, ScopeState } from '../../../../machines/index.ts'
import type { ScopeStatus } from '../../../../src/host/status.ts'
import { stateTokens } from '../model/words.ts'

export const StatePill = ({ state }: { readonly state: ScopeState }) => (
  <span className={`pill state ${stateTokens[state]}`}>
    <i className="pill-dot" aria-hidden="true" />
    {state}
  </span>
)

export const GatePill = ({ gate }: { readonly gate: ScopeStatus['auxiliaryGate'] }) => (
  <span className={`pill gate ${gate}`}>gate {gate}</span>
)

export const LaneMark = ({ lane }: { readonly lane: Lane | null }) =>
  lane === null ? <span className="muted">unknown</span> : <span className={`lane ${lane}`}>{lane}</span>

export const Empty = ({ title, children }: { readonly title: string; readonly children?: ReactNode }) => (
  <div className="empty">
    <strong>{title}</strong>
    {children !== undefined && <p>{children}</p>}
  </div>
)

export const Fact = ({ name, children }: { readonly name: string; readonly children: ReactNode }) => (
  <div className="fact">
    <dt>{name}</dt>
    <dd>{children}</dd>
  </div>
)

/** A call's id that opens its story. */
export const CallLink = ({ id, open }: { readonly id: string; readonly open: (id: string) => void }) => (
  <button type="button" className="call-link" title={`Why? ${id}`} onClick={() => open(id)}>
    <bdi>{id}</bdi>
  </button>
)
