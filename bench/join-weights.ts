import { open, type FileHandle } from 'node:fs/promises';
import { createLogger } from '../src/log.js';
import { BadRows } from '../src/rebuild/dataset/bad-rows.js';
import { readRows } from '../src/rebuild/dataset/rows.js';
import { readText } from '../src/rebuild/dataset/text.js';
import { Weights } from '../src/rebuild/dataset/weights.js';
import { validateDataset } from '../src/rebuild/steps/check.js';
import { DOWNLOAD_LIMITS } from '../src/rebuild/steps/download.js';

/**
 * Reads a dataset twice, as a rebuild does, with the weights of another file if there is one. Prints the processor time in
 * seconds and the peak resident memory in megabytes as JSON. Arguments: the two files.
 */

const [dataset = '', ...documents] = process.argv.slice(2);
const badRows = new BadRows(0, createLogger('silent', false));
const text = (file: FileHandle) => readText(file, DOWNLOAD_LIMITS.maxBytes);
const files = await Promise.all([dataset, ...documents].map((path) => open(path)));
const [file, document] = files as [FileHandle, FileHandle?];
const columns = { name: 'name', weight: 'weight' };
const weights = document && (await Weights.read(text(document), columns, 'csv', badRows));
const rows = () => {
  const read = readRows(text(file), undefined);
  return weights?.join(read) ?? read;
};
await validateDataset(rows, { badRows, onRows: () => undefined });
let loaded = 0;
for await (const batch of rows()) loaded += batch.length;
const { userCPUTime, systemCPUTime, maxRSS } = process.resourceUsage();
const seconds = (userCPUTime + systemCPUTime) / 1e6;
const megabytes = maxRSS / 1000;
console.log(JSON.stringify({ seconds, megabytes, loaded, ...weights?.counts }));
for (const one of files) await one.close();
