import { readFileSync } from 'node:fs';
import { expect } from 'chai';
import { kibanaFieldsOf } from '../../src/snapshot/package-document.js';
import { aliasOf, changesIndexOf, newIndexName, rebuildsIndexOf } from '../../src/snapshot/index-names.js';
import { packagesNamed } from '../support/datasets.js';
import { useService } from '../support/service.js';

/** An exported object; the shape of the attributes depends on the type. */
interface SavedObject {
  type: 'index-pattern' | 'lens' | 'dashboard';
  id: string;
  attributes: Record<string, any>; // eslint-disable-line @typescript-eslint/no-explicit-any -- tests assert on their shape
  references: { type: string; id: string }[];
}

const FILE = new URL('../../deploy/kibana/saved-objects.ndjson', import.meta.url);
const objects = readFileSync(FILE, 'utf8')
  .trimEnd()
  .split('\n')
  .map((line) => JSON.parse(line) as SavedObject);
/** What `sed` renames for another slug. */
const VIEWED = [aliasOf('registry'), rebuildsIndexOf('registry')];
const panels = objects.filter(({ type }) => type === 'lens');

/** The fields of its index that a panel uses. */
const fieldsOf = ({ attributes }: SavedObject) =>
  [...JSON.stringify(attributes).matchAll(/"sourceField":"([\w.]+)"/g)]
    .map(([, field = '']) => field)
    .filter((field) => field !== '___records___');

describe('The saved objects for Kibana', () => {
  const names = ['@scope/a', '@Scope/b/c', '@/a', 'Ärger', '𝒜lpha', '日本'];
  const suite = useService(() => packagesNamed(names));
  // Creates the index of rebuilds.
  before(() => suite.service.rebuild('&force=true'));

  it('are named after the alias or the index of rebuilds, but refer only to each other', () => {
    const known = objects.map(({ type, id }) => `${type} ${id}`);
    expect(new Set(known)).to.have.property('size', objects.length);
    for (const { id, attributes, references } of objects) {
      expect(id).to.match(new RegExp(`^(${VIEWED.join('|')})(-|$)`));
      expect(attributes['title']).to.match(new RegExp(VIEWED.join('|')));
      expect(known, id).to.include.members(references.map((one) => `${one.type} ${one.id}`));
    }
  });

  it('place every panel on the dashboard', () => {
    const dashboard = objects.find(({ type }) => type === 'dashboard');
    const ids = dashboard?.references.map(({ id }) => id);
    expect(panels).to.have.length.above(5);
    expect(ids).to.have.members(panels.map(({ id }) => id));
  });

  it('have a data view of the recorded changes and of no other index', () => {
    const view = objects.find(({ id }) => id === `${aliasOf('registry')}-changes`);
    const pattern = new RegExp(`^${String(view?.attributes['title']).replace('*', '.*')}$`);
    expect(changesIndexOf(aliasOf('registry'), '20260101t000000z-0123abcd')).to.match(pattern);
    expect(newIndexName(aliasOf('registry-packages-changes'), new Date())).not.to.match(pattern);
  });

  for (const [view, indexOf, least] of [
    [aliasOf('registry'), aliasOf, 5],
    [rebuildsIndexOf('registry'), rebuildsIndexOf, 7],
  ] as const)
    it(`use fields of ${view} that can be aggregated`, async () => {
      const { elasticsearch, slug } = suite.service;
      const { fields } = await elasticsearch.fieldCaps({ index: indexOf(slug), fields: '*' });
      const used = panels.filter(({ references }) => references[0]?.id === view).flatMap(fieldsOf);
      expect(used).to.have.length.above(least);
      for (const field of used)
        expect(Object.values(fields[field] ?? {})[0], field).to.include({ aggregatable: true });
    });

  it('find the initial, scope and length of each package', async () => {
    const { elasticsearch, alias } = suite.service;
    const fields = ['initial', 'scope', 'length', 'no'];
    const { hits } = await elasticsearch.search({ index: alias, docvalue_fields: fields, sort: 'no' });
    const found = hits.hits.map((hit) => hit.fields);
    const expected = names.map((name, i) => {
      const { initial, scope, length } = kibanaFieldsOf(name);
      return { initial: [initial.toLowerCase()], scope: [scope], length: [length], no: [i + 1] };
    });
    expect(found).to.deep.equal(expected);
  });
});
