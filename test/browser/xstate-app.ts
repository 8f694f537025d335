/**
 * An XState app of another author: a checkout that asks a payment actor. Its contexts and payloads are
 * secrets.
 */
import {
  type Actor,
  assign,
  createActor,
  type InspectionEvent,
  type Observer,
  sendParent,
  setup,
} from 'xstate'

export const secrets = ['PLANTED-CARD-4111', 'PLANTED-CONTEXT-lynx', 'PLANTED-DESCRIPTION'] as const

const payment = setup({ types: { events: {} as { type: 'charge'; card: string } } }).createMachine({
  id: 'payment',
  initial: 'ready',
  context: { note: secrets[1] },
  states: {
    ready: { on: { charge: 'charging' } },
    charging: { entry: sendParent({ type: 'paid', receipt: secrets[0] }), always: 'done' },
    done: {},
  },
})

const checkout = setup({
  types: { context: {} as { note: string }, events: {} as { type: string } },
  actors: { payment },
}).createMachine({
  id: 'checkout',
  description: secrets[2],
  initial: 'cart',
  context: { note: secrets[1] },
  states: {
    cart: { on: { checkout: 'paying' } },
    paying: {
      initial: 'asking',
      invoke: { id: 'payment', src: 'payment' },
      states: {
        asking: { on: { card: { target: 'waiting', actions: assign({ note: secrets[0] }) } } },
        waiting: {},
      },
      on: { paid: 'shipped', cancel: 'cart' },
    },
    shipped: { type: 'final' },
  },
})

/** Runs it through once and stays. */
export const runCheckout = (inspect: Observer<InspectionEvent>): Actor<typeof checkout> => {
  const actor = createActor(checkout, { inspect })
  actor.start()
  actor.send({ type: 'checkout' })
  actor.send({ type: 'card', number: secrets[0] } as { type: string })
  const child = actor.getSnapshot().children['payment']
  child?.send({ type: 'charge', card: secrets[0] })
  return actor
}
