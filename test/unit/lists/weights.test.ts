import { rejects } from 'node:assert/strict';
import { expect } from 'chai';
import { pino } from 'pino';
import { BadRows } from '../../../src/lists/fetch/dataset-error.js';
import { ofWeights, Weights } from '../../../src/lists/weights.js';
import type { NameRule } from '../../../src/util/name-rule.js';
import { streamOf } from '../../support/batches.js';
import { hashedPackages } from '../../support/hashed-packages.js';

describe('A document of weights', () => {
  const COLUMNS = { name: 'name', weight: 'weight' };

  /** The weights of packages with these names, and the bad rows of the document. */
  async function join(
    document: string,
    names: readonly string[],
    options: { max?: number; rule?: NameRule; columns?: typeof COLUMNS } = {},
  ) {
    const { max = 0, rule = 'exact', columns = COLUMNS } = options;
    const badRows = new BadRows(max, pino({ level: 'silent' }));
    const chunks = Array.from(Buffer.from(document), (byte) => Buffer.of(byte));
    const packages = await hashedPackages(names, rule);
    const weights = await Weights.read(streamOf(chunks), columns, packages, badRows).catch(
      (error: unknown) => {
        throw ofWeights(error);
      },
    );
    const found = names.map((name) => weights.of(name));
    return { found, counts: weights.counts, bad: badRows.skipped.first, warning: weights.warning };
  }

  for (const [what, rows, document] of [
    ['CSV', 6, 'name,weight\na,1\nb,\na,3\na,2\nunknown,4\nzero,0\n'],
    [
      'CSV with other columns, a byte order mark and CRLF',
      4,
      '\uFEFFweight,x,name\r\n3,,a\r\n4,,"unknown"\r\n,,b\r\n,,zero\r\n',
    ],
    [
      'JSON lines',
      4,
      '{"name":"a","weight":"3"}\n\n{"name":"unknown"}\r\n {"name":"b","weight":null}\n{"weight":0,"name":"zero"}',
    ],
    [
      'JSON lines with a byte order mark',
      4,
      '\uFEFF \n{"name":"a","weight":3}\n{"name":"b"}\n{"name":"zero"}\n{"name":"u"}\n',
    ],
  ] as const) {
    it(`is read: ${what}`, async () => {
      const { found, counts, bad } = await join(document, ['zero', 'a', 'A', 'b', 'c']);
      expect(found).to.deep.equal([0, 3, 0, 0, 0]);
      expect(counts).to.deep.equal({ names: rows, unknown: 1 });
      expect(bad).to.deep.equal([]);
    });
  }

  it('warns if no package has one of its names', async () => {
    const warning = (names: number) =>
      `no package has the name of a weight, so all weights are 0: WEIGHTS_URL has ${names} other names`;
    for (const [document, names, rule, expected] of [
      ['name,weight\nA,1\nB,2\n', ['a', 'b'], undefined, warning(2)],
      ['{"name":"1","weight":5}\n{"name":"2","weight":6}', ['a'], undefined, warning(2)],
      ['name,weight\nfoo/bar,1\n', ['foo-bar'], 'pypi', warning(1)],
      ['name,weight\nA,1\nB,2\n', ['a', 'B'], undefined, undefined],
      ['name,weight\nFoo_Bar,1\n', ['foo-bar'], 'pypi', undefined],
    ] as const) {
      const outcome = await join(document, names, rule === undefined ? {} : { rule });
      expect(outcome.warning, document).to.equal(expected);
    }
  });

  it('is joined by names that PEP 503 normalises only by that rule', async () => {
    const document = 'name,weight\nFoo.-_bar,1\nfoo_bar,2\n';
    const names = ['foo-bar', 'FOO.BAR', 'foobar'];
    expect((await join(document, names, { rule: 'pypi' })).found).to.deep.equal([2, 2, 0]);
    expect((await join(document, names)).found).to.deep.equal([0, 0, 0]);
  });

  it('is joined by name where packages share a hash', async () => {
    const names = ['Ab', 'cd', 'cd', 'e', 'fgh'];
    const packages = await hashedPackages(names, 'lowercase', (name) => name.length);
    const document = Buffer.from('name,weight\nCD,3\nab,1\nAB,2\nefgh,9\ne,4\n');
    const badRows = new BadRows(0, pino({ level: 'silent' }));
    const weights = await Weights.read(streamOf([document]), COLUMNS, packages, badRows);
    const found = ['ab', 'cd', 'e', 'fgh', 'ij'].map((name) => weights.of(name));
    expect(found).to.deep.equal([2, 3, 4, 0, 0]);
    expect(weights.counts).to.deep.equal({ names: 5, unknown: 1 });
  });

  const NO_NUMBER = 'not a number from 0 to 9007199254740991 in digits without leading zeros';
  const BAD_ROWS: [document: string, ...reasons: string[]][] = [
    ['name,weight\nok,1\n,1\n', 'line 3: name is empty'],
    ['name,weight\nok,1\na\na,1,2\n', 'line 3: 1 fields instead of 2', 'line 4: 3 fields instead of 2'],
    [`name,weight\nok,1\n${'é'.repeat(257)},1\n`, 'line 3: name is longer than 512 bytes'],
    ['name,weight\nok,1\na,-1\n', `line 3: weight "-1" is ${NO_NUMBER}`],
    [
      '{"name":"ok","weight":1}\n{"name":"a"\n[1]\n{"name":3}\n{"name":"a","weight":{}}\n{"name":"\\ud800"}\n{"name":"a","weight":1e21}\n',
      'line 2: expected one JSON object a line: "{\\"name\\":\\"a\\""',
      'line 3: expected one JSON object a line: "[1]"',
      'line 4: name is not a string: "3"',
      'line 5: weight is neither a string nor a number: "{}"',
      'line 6: name has half a surrogate pair: "\\ud800"',
      `line 7: weight "1e+21" is ${NO_NUMBER}`,
    ],
  ];
  for (const [document, ...reasons] of BAD_ROWS) {
    it(`has bad rows, which may be skipped: ${reasons[0]}`, async () => {
      const named = reasons.map((reason) => `WEIGHTS_URL: ${reason}`);
      const { found, bad } = await join(document, ['ok', 'a'], { max: reasons.length });
      expect(found).to.deep.equal([1, 0]);
      expect(bad).to.deep.equal(named);
      await rejects(join(document, []), { name: 'DatasetError', message: named[0] });
    });
  }

  it('is rejected if no line of JSON has the member of the weight', async () => {
    const lines = '{"name":"a","downloads":1}\n{"name":"b","n":{"weight":2}}\n';
    const message = 'WEIGHTS_URL: no line has a member "weight" (WEIGHTS_COLUMNS)';
    for (const document of [lines, lines.replace('downloads', 'Weight'), `${lines}{}\n`])
      await rejects(join(document, ['a'], { max: 9 }), { name: 'DatasetError', message });
    const columns = { name: 'name', weight: 'downloads' };
    expect((await join(lines, ['b', 'a'], { columns })).found).to.deep.equal([0, 1]);
    expect((await join('{"name":"a","weight":null}', ['a'])).found).to.deep.equal([0]);
  });

  it('is rejected if it is one JSON document', async () => {
    for (const [document, reason] of [
      [
        '[{"name":"a","weight":1}]',
        'expected one JSON object a line: "[{\\"name\\":\\"a\\",\\"weight\\":1}]"',
      ],
      ['{"a":1,"b":2}', 'no member "name" (WEIGHTS_COLUMNS): "{\\"a\\":1,\\"b\\":2}"'],
    ] as const)
      await rejects(join(document, []), { name: 'DatasetError', message: `WEIGHTS_URL: line 1: ${reason}` });
  });

  for (const [document, reason] of [
    ['', 'the document has no weights'],
    ['name,weight\n', 'the document has no weights'],
    ['name,"weight\na,1\n', 'line 1 (the header): a quote is opened and never closed'],
    ['Name,weight\na,1\n', 'line 1: the header has no column "name" (WEIGHTS_COLUMNS): "Name,weight"'],
    ['name\na\n', 'line 1: the header has no column "weight" (WEIGHTS_COLUMNS): "name"'],
    [
      'name,weight,name\na,1,b\n',
      'line 1: the header has two columns "name" (WEIGHTS_COLUMNS): "name,weight,name"',
    ],
  ] as const) {
    it(`is rejected with a reason that names it: ${reason}`, async () => {
      const message = `WEIGHTS_URL: ${reason}`;
      await rejects(join(document, [], { max: 9 }), { name: 'DatasetError', message });
    });
  }
});
