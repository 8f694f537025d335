const stated = process.env['RIGHTOFWAY_PROPERTY_RUNS']

/** How often a law is tried: `enough` times, unless the environment states another number. */
export const runs = (enough: number): number => (stated === undefined ? enough : Number(stated))

/** So few runs are asked for that long examples are left out too. */
export const inHaste = runs(100) < 100
