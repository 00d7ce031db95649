import { open } from 'node:fs/promises';
import { createLogger } from '../src/log.js';
import { BadRows } from '../src/rebuild/dataset/bad-rows.js';
import { readRows } from '../src/rebuild/dataset/rows.js';
import { readText } from '../src/rebuild/dataset/text.js';
import { Weights } from '../src/rebuild/dataset/weights.js';
import { validateDataset } from '../src/rebuild/steps/check.js';

/**
 * Reads a dataset twice, as a rebuild does, with the weights of another file if there is one. Prints the seconds and the peak
 * resident memory in megabytes as JSON. Arguments: the two files.
 */

const [dataset = '', document] = process.argv.slice(2);
const badRows = new BadRows(0, createLogger('silent', false));
const began = performance.now();
const text = async (path: string) => readText(await open(path), 2 ** 34);
const weights =
  document === undefined
    ? undefined
    : await Weights.read(await text(document), { name: 'name', weight: 'weight' }, 'csv', badRows);
const file = await open(dataset);
const rows = () => {
  const read = readRows(readText(file, 2 ** 34), undefined);
  return weights?.join(read) ?? read;
};
await validateDataset(rows, { badRows, onRows: () => undefined });
let loaded = 0;
for await (const batch of rows()) loaded += batch.length;
const seconds = (performance.now() - began) / 1000;
const megabytes = process.resourceUsage().maxRSS / 1000;
console.log(JSON.stringify({ seconds, megabytes, loaded, ...weights?.counts }));
