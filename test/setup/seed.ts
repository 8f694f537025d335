/**
 * Every law draws its examples from one seed, so that a run that passed passes again, and a change is what
 * makes a run fail. `npm run test:laws` draws new examples; a failure prints the seed with which fast-check
 * finds it again: `RIGHTOFWAY_LAW_SEED=<seed>`.
 */
import fc from 'fast-check'

const given = process.env['RIGHTOFWAY_LAW_SEED']
const seed = given === undefined ? 20_261_201 : given === 'new' ? undefined : Number(given)
if (seed !== undefined && !Number.isSafeInteger(seed))
  throw new Error(`RIGHTOFWAY_LAW_SEED is "${given}"; it is a whole number, or "new".`)
if (seed !== undefined) fc.configureGlobal({ ...fc.readConfigureGlobal(), seed })
