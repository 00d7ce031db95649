import { readFileSync } from 'node:fs';
import { Client } from '@elastic/elasticsearch';
import { expect } from 'chai';
import { createIndex } from '../../src/publish/create.js';
import { newIndexName } from '../../src/snapshot/index-names.js';
import { SearchPool } from '../../src/elasticsearch/search-pool.js';
import type { SearchBody } from '../../src/elasticsearch/msearch.js';
import * as queries from '../../src/search/queries.js';
import { decodeEntry } from '../../src/snapshot/package-document.js';
import { engines } from '../support/engines.js';
import { newSlug } from '../support/service.js';
import { STEP } from '../support/step.js';

const JSON_TYPE = { 'Content-Type': 'application/json' };

/** A file of `mappings/`, as a person would send it. */
const fileOf = (content: string) =>
  readFileSync(new URL(`../../mappings/${content}.json`, import.meta.url), 'utf8');

/** Of package number `no`, as a person would write it. */
const documentOf = (no: number, name: string) => ({
  no,
  name,
  version: '1.0.0',
  url: `https://registry.example/${name}`,
  weight: no,
  ordinal: no - 1,
  length: name.length,
  entry: Buffer.from(`{"no":${no},"name":"${name}"`).toString('base64'),
});

describe('An index that was created with a file of mappings/ alone', () => {
  const slug = newSlug();
  const indices = { packages: newIndexName(slug, new Date()), changes: newIndexName(slug, new Date()) };
  let client: Client;
  let pool: SearchPool;

  /** What Elasticsearch holds of an index, except its name and age. */
  async function detailsOf(index: string) {
    const { [index]: found } = await client.indices.get({ index });
    const { uuid, creation_date, provided_name, ...settings } = found?.settings?.index ?? {};
    expect([uuid, creation_date, provided_name]).not.to.include(undefined);
    return { settings, mappings: found?.mappings };
  }

  before(async () => {
    const { url } = engines().elasticsearch;
    client = new Client({ node: url });
    pool = new SearchPool({ nodes: [url], apiKey: undefined });
    for (const content of ['packages', 'changes'] as const) {
      const put = { method: 'PUT', headers: JSON_TYPE, body: fileOf(content) };
      expect(await fetch(`${url}/${indices[content]}`, put)).to.have.property('status', 200);
    }
    for (const [i, name] of ['pad_left', 'left-pad', 'Leftpad'].entries())
      await client.index({ index: indices.packages, document: documentOf(i + 1, name), refresh: true });
  });

  after(async () => {
    await client.indices.delete({ index: Object.values(indices), ignore_unavailable: true });
    await pool.close();
    await client.close();
  });

  for (const content of ['packages', 'changes'] as const)
    it(`equals an index of ${content} by the rule exact, with each field of the file`, async () => {
      const index = newIndexName(slug, new Date());
      await createIndex(client, content, { index }, STEP);
      const details = await detailsOf(index);
      expect(details).to.deep.equal(await detailsOf(indices[content]));
      const { mappings } = JSON.parse(fileOf(content)) as { mappings: { properties: object } };
      expect(details.mappings?.properties).to.have.all.keys(mappings.properties);
      await client.indices.delete({ index });
    });

  for (const [kind, bodies, ...found] of [
    ['search for 2 characters', queries.searchTiers('PA', 9), ['pad_left'], ['left-pad', 'Leftpad']],
    ['search for 3 characters', queries.searchTiers('lef', 9), ['left-pad', 'Leftpad'], ['pad_left']],
    ['search for more characters', queries.searchTiers('left', 9), ['left-pad', 'Leftpad'], ['pad_left']],
    ['search by weight', queries.searchTiersByWeight('left', 9), [], ['Leftpad', 'left-pad'], ['pad_left']],
    ['search for words', queries.wordTiers(['left', 'pad'], 9), ['left-pad', 'Leftpad'], [], ['pad_left']],
    ['search for a whole name', [queries.exactNames('LEFTPAD', 9)], ['Leftpad']],
    ['look-up of names', [queries.packagesNamed(['LEFT-PAD'], 'lowercase')], ['left-pad']],
    ['search for similar names', queries.similarNames('pad left', 9), ['pad_left'], [], []],
    ['search for misspelled names', queries.similarNames('lefpad', 9), [], ['left-pad', 'Leftpad'], []],
    ['page by number', [queries.browsePage(1, 2)], ['left-pad', 'Leftpad']],
    ['sample by ordinal', [queries.packagesByOrdinal([0])], ['pad_left']],
  ] satisfies [string, SearchBody[], ...string[][]][])
    it(`answers a ${kind}`, async () => {
      const hits = await pool.search(indices.packages, bodies, 'by-hand');
      expect(hits.map(({ entries }) => entries.map((one) => decodeEntry(one).name))).to.deep.equal(found);
    });
});
