import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { folder, Program, run } from './program.ts'

const answer = {
  id: 'case-1',
  provider: 'anthropic',
  status: 429,
  headers: { 'retry-after': '7' },
  body: {
    type: 'error',
    error: {
      type: 'rate_limit_error',
      message: 'This request would exceed your organization’s rate limit of 30,000 input tokens per minute.',
    },
  },
}

describe('classify', () => {
  it('reads a file of cases, one JSON line each', async () => {
    const at = folder()
    writeFileSync(
      join(at, 'cases.json'),
      JSON.stringify([answer, { ...answer, id: 'case-2', status: 529, body: 'Overloaded' }]),
    )
    const { code, out } = await run(['classify', 'cases.json', '--json'], at)
    expect(code).toBe(0)
    const lines = out
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line))
    expect(lines).toMatchObject([
      { id: 'case-1', kind: 'input-tokens-per-minute', retryAfterMs: 7_000, retryable: true },
      { id: 'case-2', kind: 'overloaded' },
    ])
  })

  it('reads what is pasted', async () => {
    const program = new Program(['classify'], folder()).input(
      'HTTP/1.1 429 Too Many Requests\r\nretry-after: 3\r\n\r\n{"error":{"type":"tokens","code":"rate_limit_exceeded","message":"Rate limit reached for gpt on tokens per min (TPM): Limit 1, Used 1, Requested 1."}}',
    )
    const { out } = await program.finished
    expect(out).toBe('tokens-per-minute, holds the model, may succeed later, wait 3000 ms\n')
  })

  it('names a file that is not there', async () => {
    const { code, err } = await run(['classify', 'none.json'], folder())
    expect([code, err]).toEqual([1, expect.stringMatching(/^rightofway: ENOENT.*none\.json'\n$/)])
  })
})
