import { expect } from 'chai';
import { readConfig } from '../../../src/config/config.js';
import { builtFrom, differingVariables, isSameInput } from '../../../src/rebuild/built-from.js';
import { MAPPING_VERSION, type SnapshotMeta } from '../../../src/snapshot/snapshot-meta.js';

const ENV = {
  ELASTICSEARCH_URL: 'http://127.0.0.1:9200',
  DATASET_URL: 'https://reader:hush@registry.example/a%20list?token=hush&page=1',
  DATASET_FORMAT: 'json',
  DATASET_JSON: 'items=packages name=id',
  PACKAGE_URL_TEMPLATE: 'https://registry.example/{name}',
};

const configOf = (changes: Record<string, string> = {}) => readConfig({ ...ENV, ...changes });

/** The metadata of a snapshot, as it is read from Elasticsearch. */
function metaOf(changes?: Record<string, string>): SnapshotMeta {
  const meta = { mapping_version: MAPPING_VERSION, built_from: builtFrom(configOf(changes)) };
  return JSON.parse(JSON.stringify(meta)) as SnapshotMeta;
}

describe('The recorded input of a snapshot', () => {
  it('has addresses, format and options, without secrets', () => {
    expect(metaOf().built_from).to.deep.equal({
      addresses: ['https://registry.example/a%20list?token=…&page=…'],
      format: 'json',
      json: { items: ['packages'], name: ['id'] },
      package_url_template: 'https://registry.example/{name}',
      max_bad_rows: 0,
      replicas: '0-1',
    });
  });

  it('omits the fragment of an address', () => {
    for (const [url, shown] of [
      ['http://registry.example/list#hush', 'http://registry.example/list'],
      ['http://registry.example/list?page=1#hush', 'http://registry.example/list?page=…'],
      ['http://registry.example/list#hush?token=hush', 'http://registry.example/list'],
    ] as const)
      expect(metaOf({ DATASET_URL: url }).built_from.addresses).to.deep.equal([shown]);
  });

  it('is equal for a refresh if only the address has changed', () => {
    expect(isSameInput(configOf(), metaOf())).to.equal(true);
    expect(isSameInput(configOf({ DATASET_URL: 'https://other.example/' }), metaOf())).to.equal(true);
    for (const [name, value] of [
      ['DATASET_JSON', 'items=packages name=title'],
      ['PACKAGE_URL_TEMPLATE', 'https://other.example/{name}'],
      ['DATASET_MAX_BAD_ROWS', '1'],
      ['NAME_RULE', 'crates'],
      ['REGISTRY_SOURCE', 'other.example'],
      ['INDEX_REPLICAS', '0'],
    ] as const)
      expect(isSameInput(configOf({ [name]: value }), metaOf()), name).to.equal(false);
  });

  it('has the document of weights, whose address is ignored, too', () => {
    const url = 'https://reader:hush@weights.example/top?token=hush';
    const before = metaOf({ WEIGHTS_URL: url });
    expect(before.built_from).to.include({ weights_address: 'https://weights.example/top?token=…' });
    expect(before.built_from.weights_columns).to.deep.equal({ name: 'name', weight: 'weight' });
    const moved = { WEIGHTS_URL: 'file:///weights.csv' };
    expect(isSameInput(configOf(moved), before)).to.equal(true);
    expect(isSameInput(configOf({ ...moved, WEIGHTS_COLUMNS: 'a,b' }), before)).to.equal(false);
    expect(isSameInput(configOf(), before)).to.equal(false);
    expect(isSameInput(configOf(moved), metaOf())).to.equal(false);
    expect(isSameInput(configOf({ WEIGHTS_COLUMNS: 'a,b' }), metaOf()), 'without weights').to.equal(true);
    const { built_from: from } = before;
    expect(differingVariables(configOf({ ...moved, WEIGHTS_COLUMNS: 'a,b' }), from)).to.deep.equal([
      'WEIGHTS_URL',
      'WEIGHTS_COLUMNS',
    ]);
  });

  it('is not equal if the snapshot has another mapping', () => {
    const earlier = { ...metaOf(), mapping_version: MAPPING_VERSION - 1 };
    expect(isSameInput(configOf(), earlier)).to.equal(false);
  });

  it('names the variables that now select a different list', () => {
    const from = metaOf().built_from;
    const names = (changes: Record<string, string>) => differingVariables(configOf(changes), from);
    expect(names({})).to.deep.equal([]);
    expect(names({ DATASET_URL: 'https://other.example/' })).to.deep.equal(['DATASET_URL']);
    expect(names({ DATASET_FORMAT: 'jsonl', DATASET_JSON: '' })).to.deep.equal([
      'DATASET_FORMAT',
      'DATASET_JSON',
    ]);
    expect(names({ INDEX_REPLICAS: '2' })).to.deep.equal([]);
    expect(names({ NAME_RULE: 'pypi' })).to.deep.equal(['NAME_RULE']);
  });
});
