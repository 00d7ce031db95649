import { compareWithBaselines } from './baselines.js';
import { measureGrowth } from './growth.js';
import { OPTIONS } from './options.js';

/**
 * `npm run bench` compares the service with its baselines. `npm run bench -- --names 10000000` measures how
 * its figures grow up to that number of names.
 */

if (OPTIONS.names === undefined) await compareWithBaselines();
else await measureGrowth(Number(OPTIONS.names));
