import { createReadStream } from 'node:fs';
import { createInterface } from 'node:readline';
import { BaselineClient } from './measure.js';

/**
 * Baseline of a load: reads a dataset line by line, without checks, and sends the names in bulk requests of
 * 2,000 documents to an index that it creates and deletes.
 */
const [dataset = ''] = process.argv.slice(2);
const { ELASTICSEARCH_URL = '' } = process.env;
const BATCH = 2000;

const client = new BaselineClient(ELASTICSEARCH_URL, 1);
const index = `bench-baseline-load-${process.pid}`;
let body = '';
let rows = 0;
for await (const line of createInterface({ input: createReadStream(dataset) })) {
  const [no, name, version, url] = line.split(',');
  if (rows++ === 0) continue;
  body += `{"index":{"_id":"${no}"}}\n${JSON.stringify({ no, name, version, url })}\n`;
  if (rows % BATCH > 0) continue;
  await client.post(`/${index}/_bulk?filter_path=errors`, body);
  body = '';
}
if (body !== '') await client.post(`/${index}/_bulk?filter_path=errors`, body);
await fetch(`${ELASTICSEARCH_URL}/${index}`, { method: 'DELETE' });
await client.close();
