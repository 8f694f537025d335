/**
 * The first fix of a host with this problem: a gate in memory per agent. A primary closes its own agent's
 * gate, waits until that agent's auxiliaries in flight have settled, and keeps the gate closed for the whole
 * turn. Then all waiting auxiliaries go at once. After an acceleration limit the primary cools down for 65 s
 * and up to 5 s more, with the gate still closed.
 *
 * Assumed where its description is silent: a primary refused for another reason is retried like its
 * auxiliaries (5 times at 1, 2, 4, 8, 8 s); the number of a primary's cooldowns has no limit.
 */
import type { SimulatedCall, World } from '../../world.ts'
import type { Contender } from '../ground.ts'
import { patientRetries, sendRetrying, waitBeforeRetry } from './retrying.ts'

const coolDownMs = 65_000
const coolDownJitterMs = 5_000

interface Agent {
  readonly primaries: SimulatedCall[]
  readonly held: SimulatedCall[]
  turn: boolean
  auxiliariesInFlight: number
}

export const settleAndFlush: Contender = ({ world, random }) => {
  const agents = new Map<string, Agent>()
  const agentOf = (name: string): Agent => {
    const known = agents.get(name)
    if (known !== undefined) return known
    const agent: Agent = { primaries: [], held: [], turn: false, auxiliariesInFlight: 0 }
    agents.set(name, agent)
    return agent
  }
  const closed = ({ turn, primaries }: Agent): boolean => turn || primaries.length > 0

  const advance = (agent: Agent): void => {
    if (!agent.turn && agent.auxiliariesInFlight === 0) {
      const primary = agent.primaries.shift()
      if (primary !== undefined) {
        agent.turn = true
        sendPrimary(world, primary, random, () => {
          agent.turn = false
          advance(agent)
        })
      }
    }
    if (!closed(agent)) for (const call of agent.held.splice(0)) sendAuxiliary(agent, call)
  }
  const sendAuxiliary = (agent: Agent, call: SimulatedCall): void => {
    agent.auxiliariesInFlight += 1
    sendRetrying(world, call, {
      bounds: patientRetries,
      random,
      jitter: 0,
      over: () => {
        agent.auxiliariesInFlight -= 1
        advance(agent)
      },
    })
  }

  return {
    submit: (call) => {
      const agent = agentOf(call.principal)
      if (call.lane === 'primary') agent.primaries.push(call)
      else agent.held.push(call)
      advance(agent)
    },
  }
}

const sendPrimary = (world: World, call: SimulatedCall, random: () => number, over: () => void): void => {
  const attempt = (retries: number): void => {
    world.dispatch(call, {
      accepted: () => {},
      completed: over,
      refused: (refusal) => {
        if (refusal.kind === 'acceleration' && !refusal.permanent) {
          const restMs = Math.ceil(coolDownMs + coolDownJitterMs * random())
          world.timeline.after(restMs, () => attempt(retries))
          return
        }
        const waitMs = waitBeforeRetry(refusal, retries, { bounds: patientRetries, random, jitter: 0 })
        if (waitMs !== null) {
          world.timeline.after(waitMs, () => attempt(retries + 1))
          return
        }
        world.end(call.id, true)
        over()
      },
    })
  }
  attempt(0)
}
