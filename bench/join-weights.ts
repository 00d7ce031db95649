import { pathToFileURL } from 'node:url';
import { readConfig } from '../src/config/config.js';
import { createLogger } from '../src/util/log.js';
import { BadRows } from '../src/lists/dataset-error.js';
import { checkPackages } from '../src/lists/checked-packages.js';
import { downloadInputs, type Inputs } from '../src/lists/download.js';

/**
 * Reads a dataset, checks it and reads its packages, as a rebuild does, with the weights of another file if there is one. Prints the
 * processor time in seconds and the peak resident memory in megabytes as JSON. Arguments: the two files.
 */

const [dataset = '', weights] = process.argv.slice(2);
const { signal } = new AbortController();
const badRows = new BadRows(0, createLogger('silent'));
const urlOf = (path: string) => pathToFileURL(path).href;
const config = readConfig({
  ELASTICSEARCH_URL: 'http://127.0.0.1:9200',
  DATASET_URL: urlOf(dataset),
  WEIGHTS_URL: weights && urlOf(weights),
});
const inputs = (await downloadInputs(config, signal, { badRows })) as Inputs;
const { packages } = inputs.dataset;
const checked = await checkPackages(packages, { badRows, weights: inputs.weights?.weights, signal });
let loaded = 0;
for await (const entries of checked.read()) loaded += entries.length;
const { userCPUTime, systemCPUTime, maxRSS } = process.resourceUsage();
const seconds = (userCPUTime + systemCPUTime) / 1e6;
const megabytes = maxRSS / 1000;
console.log(JSON.stringify({ seconds, megabytes, loaded, ...inputs.weights?.weights.counts }));
await packages.close();
