import { expect } from 'chai';
import type { PackageEntry } from '../../src/snapshot/package-document.js';
import { datasetFile, packagesNamed, toCsv } from '../support/datasets.js';
import { refreshes } from '../support/refreshes.js';
import { newSlug, rebuildHere, startService, useService } from '../support/service.js';

const PLAIN = packagesNamed(['lib-a', 'lib-b', 'lib-c']);

/** The last package has none. */
const TEXTS = ['Finds "things", fast', '日本 🚀 weight', undefined];

const describedBy = (texts: readonly (string | undefined)[]): PackageEntry[] =>
  PLAIN.map((entry, i) => (texts[i] === undefined ? entry : { ...entry, description: texts[i] }));
const DESCRIBED = describedBy(TEXTS);
const withWeights = (entries: readonly PackageEntry[]) =>
  entries.map((entry) => ({ ...entry, weight: entry.no }));

/** A response with these has all packages, sorted by name. */
const READS = ['/search?q=lib', '/browse', '/similar?name=lib-d', '/lookup?name=lib-a&name=lib-b&name=lib-c'];

/** The members `description` in a JSON text. */
const MEMBERS = /"description":"(?:[^"\\]|\\.)*"/g;

describe('Descriptions', function () {
  this.timeout(60_000);
  const suite = useService(() => DESCRIBED);
  const exported = async (format = 'csv') => (await suite.service.get(`/export?format=${format}`)).text;
  const changesSince = async (since: string) =>
    (await suite.service.get(`/changes?since=${since}`)).body.results as object[];

  for (const path of READS)
    it(`are members of the entries of ${path.replace(/\?.*/, '')}`, async () => {
      const members = (await suite.service.get(path)).text.match(MEMBERS);
      const texts = TEXTS.filter((text) => text !== undefined);
      expect(members).to.deep.equal(texts.map((text) => `"description":${JSON.stringify(text)}`));
    });

  it('stand before the weight in every entry', async () => {
    await suite.publish(withWeights(DESCRIBED));
    const { text } = await suite.service.get('/packages/lib-a');
    expect(text).to.match(/"url":"[^"]+","description":"Finds \\"things\\", fast","weight":1}$/);
    expect((await suite.service.get('/packages/lib-c')).text).to.match(/"url":"[^"]+","weight":3}$/);
    expect((await exported('jsonl')).split('\n')[0]).to.equal(text);
  });

  it('are never searched', async () => {
    for (const path of ['/search?q=things', '/search?q=weight', '/similar?name=things'])
      expect((await suite.service.get(path)).body.count).to.equal(0);
  });

  it('are a column of an export, which is a dataset of the same snapshot', async () => {
    const packages = withWeights(DESCRIBED);
    await suite.publish(packages);
    const csv = await exported();
    expect(csv).to.equal(toCsv(packages));
    expect(csv.split('\n')[0]).to.equal('package_no,name,version,url,description,weight');
    await suite.publish(csv);
    expect(await exported()).to.equal(csv);
  });

  it('are neither a change nor in a change', async () => {
    const since = await suite.publish(DESCRIBED);
    await suite.publish(describedBy(['', 'other', 'new']));
    expect(await changesSince(since)).to.deep.equal([]);
    await suite.publish(DESCRIBED.map((entry, i) => (i === 0 ? { ...entry, version: '2.0.0' } : entry)));
    const [change, ...others] = await changesSince(since);
    expect(others).to.deep.equal([]);
    expect(change).to.deep.equal({
      change: 'updated',
      ...PLAIN[0],
      version: '2.0.0',
      previous_version: '1.0.0',
    });
  });

  it('are nowhere if the dataset has none', async () => {
    await suite.publish(PLAIN);
    const [first] = PLAIN;
    const { no, name, version, url } = first as PackageEntry;
    const text = `{"no":${no},"name":"${name}","version":"${version}","url":"${url}"}`;
    expect((await suite.service.get('/packages/lib-a')).text).to.equal(text);
    expect(await exported()).to.equal(toCsv(PLAIN));
    expect((await exported('jsonl')).split('\n')[0]).to.equal(text);
  });

  it('are an input of a refresh', async () => {
    const dataset = await datasetFile(toCsv(DESCRIBED));
    const slug = newSlug();
    const env = { DATASET_URL: dataset.url, REBUILD_INTERVAL_SECONDS: '1' };
    await rebuildHere(env, slug);
    await dataset.write(toCsv(describedBy(['other'])));
    const replica = await startService(env, slug);
    await refreshes(replica, 2);
    expect(replica.outcomes().rebuilt).to.equal(1);
    expect((await replica.get('/packages/lib-a')).body.description).to.equal('other');
    await replica.end();
    await dataset.remove();
  });
});
