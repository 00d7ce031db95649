import { readFileSync } from 'node:fs';
import { expect } from 'chai';
import { FIELDS, isVolatile } from '../../src/snapshot/package-fields.js';
import { NAME_RULES, unifySeparators } from '../../src/util/name-rule.js';

interface CharFilter {
  pattern: string;
  replacement: string;
}

interface IndexFile {
  settings: {
    analysis: Record<'normalizer' | 'analyzer', Record<string, { char_filter: string[] }>> & {
      char_filter: Record<string, CharFilter>;
    };
  };
  mappings: { properties: Record<string, { type: string }> };
}

const fileOf = (content: string) =>
  JSON.parse(readFileSync(new URL(`../../mappings/${content}.json`, import.meta.url), 'utf8')) as IndexFile;
const FILES = { packages: fileOf('packages'), changes: fileOf('changes') };

/** The types of the fields that documents have beside the fields of a package. */
const OTHER_FIELDS = {
  packages: { ordinal: 'integer', initial: 'keyword', scope: 'keyword', length: 'short', entry: 'binary' },
  changes: {
    length: 'short',
    change: 'keyword',
    previous_version: 'keyword',
    taken_at: 'date',
    entry: 'binary',
  },
};

const INDEX_TYPES = { number: 'long', text: 'keyword', prose: 'keyword' };

/** All texts of up to six of these characters. */
function spellings(): string[] {
  const spelled = [['']];
  for (let length = 1; length <= 6; length++)
    spelled.push(
      (spelled.at(-1) ?? []).flatMap((text) => ['-', '_', '.', ' ', 'A'].map((one) => text + one)),
    );
  return spelled.flat();
}

describe('The files of new indices', () => {
  for (const content of ['packages', 'changes'] as const)
    it(`have one line for each field of ${content}`, () => {
      const names = (Object.keys(FIELDS) as (keyof typeof FIELDS)[]).filter(
        (name) => content === 'packages' || !isVolatile(name),
      );
      const fields = Object.fromEntries(names.map((name) => [name, INDEX_TYPES[FIELDS[name].type]]));
      const { properties } = FILES[content].mappings;
      const types = Object.fromEntries(Object.entries(properties).map(([name, { type }]) => [name, type]));
      expect(types).to.deep.equal({ ...fields, ...OTHER_FIELDS[content] });
    });

  it('store and compare the fields of a package in the same way', () => {
    const { packages, changes } = FILES;
    expect(changes.settings.analysis).to.deep.equal(packages.settings.analysis);
    for (const name of Object.keys(FIELDS).filter((one) => one in changes.mappings.properties))
      expect(changes.mappings.properties[name]).to.deep.equal(packages.mappings.properties[name]);
  });

  for (const rule of NAME_RULES)
    it(`unify the separators of names by the rule ${rule} as the service unifies those of queries`, () => {
      const { char_filter: filters, normalizer, analyzer } = FILES.packages.settings.analysis;
      const { [rule]: filter } = filters;
      const suffix = filter === undefined ? '' : `_${rule}`;
      for (const name of ['lowercase', 'bigrams', 'trigrams'].map((one) => one + suffix))
        expect({ ...normalizer, ...analyzer }[name]?.char_filter).to.deep.equal(filter ? [rule] : []);
      const unify = (text: string) =>
        filter === undefined ? text : text.replaceAll(new RegExp(filter.pattern, 'g'), filter.replacement);
      const different = spellings().filter((text) => unify(text) !== unifySeparators(rule, text));
      expect(different).to.deep.equal([]);
    });
});
