/**
 * What the look-ups in the three tables of the gateway cost a request: `node test/bench/tables.ts`. The parts of the body
 * that they read are read once and are in the figure.
 */
import { pathToFileURL } from 'node:url'
import { modelAsked } from '../../src/gateway/routing/route-table.ts'
import { makeRouting } from '../../src/gateway/routing/routing.ts'
import { Subject } from '../../src/gateway/routing/subject.ts'
import { claudeBody, claudeCode, codex } from '../gateway/routing/agents.ts'

const cases = {
  'no agent': { 'x-api-key': 'k', 'content-type': 'application/json' },
  'claude code': claudeCode({ 'x-claude-code-agent-id': 'a1' }),
  codex: codex({ agent_name: '/root/x' }),
}

/** Microseconds a request, by kind of client: of `rounds` rounds the best. */
export const measureTables = ({ rounds = 5, requests = 20_000 } = {}): Readonly<Record<string, number>> => {
  const { routes, classifier, namer } = makeRouting()
  const upstream = { name: 'anthropic', provider: 'anthropic' }
  const path = '/v1/messages'
  const body = Buffer.from(claudeBody('hi'))
  const ask = (headers: Readonly<Record<string, string>>): number => {
    const found = routes.rowOf(path)
    const { model } = modelAsked({ found, query: null, contentType: 'application/json', body })
    const subject = new Subject({ upstream, path, query: null, headers, model, body }, 'secret')
    return (classifier.classify(subject)?.row.length ?? 0) + namer.identify(subject).model.length
  }
  const figures: Record<string, number> = {}
  for (const [name, headers] of Object.entries(cases)) {
    let best = Number.POSITIVE_INFINITY
    for (let round = 0; round < rounds; round += 1) {
      let sum = 0
      const startedAt = performance.now()
      for (let request = 0; request < requests; request += 1) sum += ask(headers)
      const us = ((performance.now() - startedAt) * 1_000) / requests
      if (sum > 0) best = Math.min(best, us)
    }
    figures[name] = best
  }
  return figures
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href)
  for (const [name, us] of Object.entries(measureTables()))
    console.log(`${name.padEnd(12)} ${us.toFixed(1)} us`)
