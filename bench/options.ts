import { parseArgs } from 'node:util';

/** Options of `npm run bench`. */
export const OPTIONS = parseArgs({
  options: {
    /** Compares with the baselines on fewer names, in fewer rounds. */
    quick: { type: 'boolean', default: false },
    /** Measures the growth up to this number of names instead. */
    names: { type: 'string' },
  },
}).values;
