import { readFileSync } from 'node:fs';
import type { estypes } from '@elastic/elasticsearch';
import { expect } from 'chai';
import { aliasOf, changesIndexOf, newIndexName } from '../../src/snapshot/index-names.js';
import { packagesNamed } from '../support/datasets.js';
import { layerOf, layersOf, rowsOf, savedObjects, type Row } from '../support/kibana-lens.js';
import { SHARED_PACKAGES, useService, useSharedService } from '../support/service.js';

/** Types of fields that the operations of Lens require. */
const WHOLE_NUMBERS = ['long', 'integer', 'short', 'byte'];
const TYPES: Record<string, readonly string[]> = {
  terms: ['keyword'],
  range: WHOLE_NUMBERS,
  max: WHOLE_NUMBERS,
};

const [dataView, ...others] = savedObjects();
const panels = others.filter(({ type }) => type === 'lens');
const dashboards = others.filter(({ type }) => type === 'dashboard');

describe('The saved objects for Kibana', () => {
  it('are a data view over the alias, its panels and one dashboard, each with a unique id', () => {
    expect(dataView).to.include({ type: 'index-pattern', id: aliasOf('registry') });
    expect(dataView?.attributes['title']).to.equal(aliasOf('registry'));
    expect(panels).to.have.length.above(5);
    expect(dashboards).to.have.length(1);
    const ids = savedObjects().map(({ id }) => id);
    expect(new Set(ids)).to.have.property('size', ids.length);
  });

  it('include a data view by time of the recorded changes, and of no other index', () => {
    const view = others.find(({ type }) => type === 'index-pattern');
    expect(view?.id).to.equal(`${aliasOf('registry')}-changes`);
    const { title, timeFieldName } = view?.attributes ?? {};
    const pattern = new RegExp(`^${String(title).replace('*', '.*')}$`);
    const id = '20260101t000000z-0123abcd';
    expect(changesIndexOf(aliasOf('registry'), id)).to.match(pattern);
    expect(newIndexName(aliasOf('registry-packages-changes'), new Date())).not.to.match(pattern);
    const file = new URL('../../mappings/changes.json', import.meta.url);
    const { mappings } = JSON.parse(readFileSync(file, 'utf8')) as estypes.IndicesCreateRequest;
    expect(mappings?.properties?.[timeFieldName as string]).to.deep.equal({ type: 'date' });
  });

  it('are named after the alias, so that other registries can have their own, and refer only to each other', () => {
    const known = savedObjects().map(({ type, id }) => `${type} ${id}`);
    for (const { id, attributes, references } of savedObjects()) {
      expect(id).to.match(new RegExp(`^${aliasOf('registry')}(-|$)`));
      expect(attributes['title']).to.contain(aliasOf('registry'));
      expect(known, id).to.include.members(
        references.map((reference) => `${reference.type} ${reference.id}`),
      );
    }
  });

  it('place every panel on the dashboard', () => {
    const [dashboard] = dashboards;
    const shown = JSON.parse(dashboard?.attributes['panelsJSON'] as string) as {
      panelIndex: string;
      panelRefName: string;
      gridData: { i: string };
    }[];
    const ids = shown.map(({ panelIndex, panelRefName, gridData }) => {
      expect(gridData.i).to.equal(panelIndex);
      return dashboard?.references.find(({ name }) => name === `${panelIndex}:${panelRefName}`)?.id;
    });
    expect(ids).to.have.members(panels.map(({ id }) => id));
  });

  it('have panels that are consistent', () => {
    for (const panel of panels) {
      for (const [id, { columns, columnOrder }] of Object.entries(layersOf(panel))) {
        expect(columnOrder, panel.id).to.have.members(Object.keys(columns));
        expect(panel.references).to.deep.include({
          type: 'index-pattern',
          id: dataView?.id,
          name: `indexpattern-datasource-layer-${id}`,
        });
        const shown = columnsShown(panel.attributes['state'].visualization);
        expect(columnOrder).to.include.members(shown);
        expect(shown).to.not.be.empty;
      }
    }
  });
});

describe('The dashboard for Kibana, on the bundled packages,', () => {
  const packages = SHARED_PACKAGES;
  const suite = useSharedService();
  const rows = (panel: string) => rowsOf(suite.service.elasticsearch, suite.service.alias, layerOf(panel));

  it('uses fields that exist and can be aggregated as required', async () => {
    const { elasticsearch, alias } = suite.service;
    const { fields } = await elasticsearch.fieldCaps({ index: alias, fields: '*' });
    const columns = panels.flatMap((panel) =>
      Object.values(layersOf(panel)).flatMap((layer) => Object.values(layer.columns)),
    );
    let checked = 0;
    for (const column of columns) {
      if (!('sourceField' in column) || column.sourceField === '___records___') continue;
      const [[type, caps] = [], ...more] = Object.entries(fields[column.sourceField] ?? {});
      expect(more, column.sourceField).to.be.empty;
      expect(TYPES[column.operationType], column.sourceField).to.include(type);
      expect(caps?.aggregatable, column.sourceField).to.equal(true);
      checked++;
    }
    expect(checked).to.be.above(5);
    const { fieldFormatMap, sourceFilters } = dataView?.attributes ?? {};
    const named = [
      ...Object.keys(JSON.parse(fieldFormatMap as string) as object),
      ...(JSON.parse(sourceFilters as string) as { value: string }[]).map(({ value }) => value),
    ];
    expect(fields).to.include.keys(named);
  });

  it('counts the packages, and the names by their first character; Debian has no scopes', async () => {
    expect(await rows('total')).to.deep.equal([{ packages: packages.length }]);
    const initials = packages.map(({ name }) => name.charAt(0).toLowerCase());
    expectCounts(await rows('initials'), 'initial', initials);
    expect(await rows('scopes')).to.deep.equal([{ scope: '(none)', packages: packages.length }]);
  });

  it('counts the names of each length', async () => {
    const counts = tally(packages.map(({ name }) => name.length));
    const found = (await rows('lengths')).filter((row) => row['packages'] !== 0);
    expect(found).to.deep.equal(
      [...counts].sort(([a], [b]) => a - b).map(([length, count]) => ({ length, packages: count })),
    );
  });

  it('shows the twenty most common versions', async () => {
    const counts = tally(packages.map(({ version }) => version));
    const found = await rows('versions');
    for (const { version, packages: count } of found) expect(counts.get(version as string)).to.equal(count);
    expect(found.map((row) => row['packages'])).to.deep.equal(
      [...counts.values()].sort((a, b) => b - a).slice(0, 20),
    );
  });

  it('shows growth by package number, up to the number of packages', async () => {
    const found = await rows('growth');
    expect(found).to.have.length.within(50, 101);
    const width = Number(found[1]?.['no']) - Number(found[0]?.['no']);
    for (const row of found) {
      const end = Number(row['no']) + width;
      expect(row['packages']).to.equal(packages.filter(({ no }) => no < end).length);
    }
    expect(found.at(-1)?.['packages']).to.equal(packages.length);
  });
});

describe('The dashboard for Kibana, on names of any kind,', () => {
  const names = ['@scope/a', '@scope/b/c', '@Scope/a', '@scope', '@/a', 'a/b', 'Ärger', '𝒜lpha', '日本', '日本\t/語']; // prettier-ignore
  const packages = packagesNamed(names).map((entry) => ({ ...entry, no: entry.no * 5 }));
  const suite = useService(() => packages);
  const rows = (panel: string) => rowsOf(suite.service.elasticsearch, suite.service.alias, layerOf(panel));

  it('shows the first code point in lower case, the scope unchanged, and the length in code points', async () => {
    expectCounts(await rows('initials'), 'initial', ['@', '@', '@', '@', '@', 'a', 'ä', '𝒜', '日', '日']);
    const none = names.slice(3).map(() => '(none)');
    expectCounts(await rows('scopes'), 'scope', ['@scope', '@scope', '@Scope', ...none]);
    const found = (await rows('lengths')).filter((row) => row['packages'] !== 0);
    expectCounts(found, 'length', [8, 10, 8, 6, 3, 3, 5, 5, 2, 5]);
  });

  it('shows the count of packages at each number if some numbers are missing', async () => {
    expect((await rows('growth')).map(({ no, packages }) => [no, packages])).to.deep.equal(
      names.map((_, i) => [(i + 1) * 5, i + 1]),
    );
  });
});

/** The columns that a visualization of any kind shows. */
function columnsShown(visualization: unknown): string[] {
  if (typeof visualization !== 'object' || visualization === null) return [];
  return Object.entries(visualization as Record<string, string | string[]>).flatMap(([key, value]) =>
    /^(columnId|xAccessor|metricAccessor|accessors)$/.test(key) ? [value].flat() : columnsShown(value),
  );
}

function tally<T>(values: T[]): Map<T, number> {
  const counts = new Map<T, number>();
  for (const value of values) counts.set(value, (counts.get(value) ?? 0) + 1);
  return counts;
}

/** Asserts that there is one row with the count of each value, in any order. */
function expectCounts(rows: Row[], column: string, values: (string | number)[]): void {
  const expected = [...tally(values)].map(([value, count]) => ({ [column]: value, packages: count }));
  expect(rows).to.have.deep.members(expected);
}
