import { expect } from 'chai';
import type { DatasetFormat } from '../../../../src/config/dataset-format.js';
import { NAME_RULES, type NameRule } from '../../../../src/util/name-rule.js';
import { convert, useListServer } from '../../../support/list-server.js';

const simple = (...names: string[]) =>
  JSON.stringify({ meta: { 'api-version': '1.0' }, projects: names.map((name) => ({ name })) });

describe('Spellings that the name rule does not tell apart', () => {
  const serve = useListServer();
  const convertFrom = async (format: DatasetFormat, body: string, nameRule?: NameRule) =>
    convert(format, (await serve(() => body)).url, nameRule === undefined ? {} : { nameRule });
  const named = (...names: string[]) => names.map((name) => ({ name }));

  it('are one name where entries replace earlier ones: the spelling that counts, at the first place', async () => {
    const lines = 'a_b 1\nc 1\nA.b 2\nC 2\na_b 3\n';
    const rows = (...all: [string, string][]) => all.map(([name, version]) => ({ name, version }));
    expect(await convertFrom('lines', lines)).to.deep.equal(
      rows(['a_b', '3'], ['c', '1'], ['A.b', '2'], ['C', '2']),
    );
    expect(await convertFrom('lines', lines, 'crates')).to.deep.equal(rows(['a_b', '3'], ['C', '2'], ['A.b', '2'])); // prettier-ignore
    expect(await convertFrom('lines', lines, 'pypi')).to.deep.equal(rows(['a_b', '3'], ['C', '2']));
    expect(await convertFrom('lines', 'a_b 1\nc 1\nA.b 2\n', 'pypi')).to.deep.equal(
      rows(['A.b', '2'], ['c', '1']),
    );
    expect(await convertFrom('json', '["a","B","A"]', 'lowercase')).to.deep.equal(named('A', 'B'));
    const stanzas = ['a 2', 'A 10', 'a 9'].map((one) =>
      one.replace(/(.+) (.+)/, 'Package: $1\nVersion: $2\n\n'),
    );
    expect(await convertFrom('debian', stanzas.join(''), 'lowercase')).to.deep.equal(rows(['A', '10']));
  });

  it('are one name where repeats are merged: the first spelling', async () => {
    const gems = '---\nA_b 1 c\nc 1 c\na-b 3,2 c\nA_b -3 c\n';
    expect(await convertFrom('rubygems', gems, 'crates')).to.deep.equal([
      { name: 'A_b', version: '2' },
      { name: 'c', version: '1' },
    ]);
    expect(await convertFrom('rubygems', gems)).to.have.length(3);
    const list = JSON.stringify({ packageNames: ['V/b', 'v/a', 'v/B', 'v/A'] });
    expect(await convertFrom('packagist', list)).to.deep.equal(named('V/b', 'v/a'));
    expect(await convertFrom('packagist', list, 'exact')).to.have.length(4);
    const included = JSON.stringify({ packages: { 'v/B': {}, 'V/b': {} } });
    expect(await convertFrom('packagist', included)).to.deep.equal(named('v/B'));
  });

  it('are one project of a Simple index whatever the rule, code point by code point', async () => {
    const list = simple('Zope.Interface', 'zope_interface', 'ΟΔΟΣ', 'οδοσ', 'İ', 'i');
    for (const rule of NAME_RULES)
      expect(await convertFrom('pypi', list, rule)).to.deep.equal(named('Zope.Interface', 'ΟΔΟΣ', 'İ'));
  });

  it('are an error where a repeated name is one', async () => {
    const list = '{"name":"React"}\n{"name":"react"}\n';
    expect(await convertFrom('jsonl', list)).to.deep.equal(named('React', 'react'));
    expect(await convertFrom('jsonl', list, 'lowercase')).to.equal(
      'line 2: name "react" is already on line 1, as "React"',
    );
  });
});
