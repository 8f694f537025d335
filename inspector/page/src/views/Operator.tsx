import { useState } from 'react'
import { useInspection } from '../hooks/inspection.ts'
import { act } from '../net/api.ts'

/** The actions of an operator on a scope. The token stays in this page's memory. */
export const Operator = ({ scope }: { readonly scope: string }) => {
  const { track } = useInspection()
  const [token, setToken] = useState('')
  const [callId, setCallId] = useState('')
  const [policy, setPolicy] = useState(() =>
    JSON.stringify(track?.contextAt(track.entries.length - 1).policy ?? {}, null, 2),
  )
  const [result, setResult] = useState('')
  const perform = (action: Parameters<typeof act>[0], body: () => object) => async () => {
    try {
      await act(action, token, { scope, ...body() })
      setResult(`${action}: done`)
    } catch (error) {
      setResult(`${action}: ${error instanceof Error ? error.message : String(error)}`)
    }
  }
  return (
    <form className="operator-form" onSubmit={(event) => event.preventDefault()}>
      <label>
        Operator token
        <input
          type="password"
          autoComplete="off"
          value={token}
          onChange={({ target }) => setToken(target.value)}
        />
      </label>
      <button type="button" onClick={perform('release-wait', () => ({}))}>
        Release the provider's wait
      </button>
      <label>
        Call
        <input value={callId} onChange={({ target }) => setCallId(target.value)} />
      </label>
      <button type="button" onClick={perform('promote', () => ({ callId }))}>
        Promote this call
      </button>
      <label className="wide">
        Policy
        <textarea
          rows={12}
          spellCheck={false}
          value={policy}
          onChange={({ target }) => setPolicy(target.value)}
        />
      </label>
      <button type="button" onClick={perform('policy', () => ({ policy: JSON.parse(policy) as unknown }))}>
        Put this policy in force
      </button>
      <output>{result}</output>
    </form>
  )
}
