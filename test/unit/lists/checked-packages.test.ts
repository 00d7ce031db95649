import { rejects } from 'node:assert/strict';
import { expect } from 'chai';
import { pino } from 'pino';
import type { PackageEntry } from '../../../src/snapshot/package-document.js';
import { BadRows } from '../../../src/lists/fetch/dataset-error.js';
import { Documents } from '../../../src/lists/fetch/documents.js';
import type { Item } from '../../../src/lists/formats/list-format.js';
import { PackageFile } from '../../../src/lists/package-file.js';
import { checkPackages } from '../../../src/lists/checked-packages.js';
import { NAME_RULES, type NameRule } from '../../../src/util/name-rule.js';
import { streamOf } from '../../support/batches.js';
import { integer, pick, seededRandom } from '../../fixtures/random.js';

/** The number and name of a package. */
type Short = [no: number, name: string];

/** Rows from line 2 on: packages, or reasons why a row is bad. */
function rowsOf(...rows: (Short | string)[]): Item[] {
  return rows.map((row, i) => {
    const at = i + 2;
    if (typeof row === 'string') return { at, reason: row };
    return { at, no: row[0], name: row[1], url: `https://registry.example/${row[0]}` };
  });
}

/** Batches of three, so that a few rows are several batches, or of a thousand. */
function batchesOf(rows: Item[]): AsyncGenerator<Item[]> {
  const size = rows.length < 1000 ? 3 : 1000;
  const count = Math.ceil(rows.length / size);
  return streamOf(Array.from({ length: count }, (_, i) => rows.slice(i * size, (i + 1) * size)));
}

/** Checks rows with a real logger. @returns the packages that are not skipped, and the warnings. */
async function check(
  rows: Item[] | (() => AsyncIterable<Item[]>),
  maxBadRows = 0,
  nameRule: NameRule = 'exact',
) {
  const warnings: string[] = [];
  const write = (json: string) => {
    const { place, reason } = JSON.parse(json) as { place: string; reason: string };
    warnings.push(`${place}: ${reason}`);
  };
  const badRows = new BadRows(maxBadRows, pino({ level: 'warn', base: null }, { write }));
  const read = () => (typeof rows === 'function' ? rows() : batchesOf(rows));
  const options = { packageUrlTemplate: undefined, jsonPaths: { items: [] }, nameRule };
  const file = await PackageFile.create({ read }, options);
  try {
    const { signal } = new AbortController();
    const transfer = { windowMs: 1000, signal };
    await file.fill(new Documents(['file:///list'], { transfer, maxBytes: 0 }), badRows);
    const checked = await checkPackages(file, { badRows, signal });
    const kept: PackageEntry[] = [];
    for await (const entries of checked.read()) kept.push(...entries);
    return { ...checked, kept, warnings };
  } finally {
    await file.close();
  }
}

const ALREADY_A = 'name "a" is already on line 2';
const NUMBER_7 = 'package_no 7 is already on line 2';
const WRONG = 'line 3: name "c" is wrong';
const tooMany = (max: number) => ` (more rows are invalid than DATASET_MAX_BAD_ROWS=${max} allows)`;
/** A long name that is quoted as its first characters. */
const LONG = '"'.repeat(500);
const ALREADY_LONG = `name "${'\\"'.repeat(32)}"… is already on line 2`;
const NAMES = ['a', 'A', 'a a', 'a  a', 'é', 'e\u0301', 'a\u2028a', '__proto__', 'constructor'];

describe('checkPackages', () => {
  it('takes spellings that the name rule does not tell apart for one name', async () => {
    const rows = rowsOf([1, 'Foo_Bar'], [2, 'foo.bar'], [3, 'foo-bar'], [4, 'foo--bar'], [5, 'Foo_Bar']);
    const as = (place: number, name: string) => `line ${place}: name "${name}" is already on line 2`;
    const spelled = (place: number, name: string) => `${as(place, name)}, as "Foo_Bar"`;
    const reasons: Record<NameRule, string[]> = {
      exact: [as(6, 'Foo_Bar')],
      lowercase: [as(6, 'Foo_Bar')],
      crates: [spelled(4, 'foo-bar'), as(6, 'Foo_Bar')],
      pypi: [spelled(3, 'foo.bar'), spelled(4, 'foo-bar'), spelled(5, 'foo--bar'), as(6, 'Foo_Bar')],
    };
    for (const rule of NAME_RULES) {
      const { kept, warnings } = await check(rows, 4, rule);
      expect(warnings, rule).to.deep.equal(reasons[rule]);
      expect(kept).to.have.length(5 - warnings.length);
    }
  });

  /** With the ordinals of the packages that are not skipped, in the order of the rows. */
  const lists: [what: string, rows: Item[], ordinals: number[], ...warnings: string[]][] = [
    ['numbers in order', rowsOf([1, 'a'], [2, 'b'], [3, 'c'], [4, 'd']), [0, 1, 2, 3]],
    ['numbers with gaps, in any order', rowsOf([900, 'a'], [7, 'b'], [Number.MAX_SAFE_INTEGER, 'c'], [1, 'd'], [8, 'e'], [901, 'f']), [3, 1, 5, 0, 2, 4]],
    ['names that differ only in case, white space or normalisation, or are properties of objects', rowsOf(...NAMES.map((name, i): Short => [i + 1, name])), [...NAMES.keys()]],
    ['bad rows', rowsOf([10, 'a'], 'name "c" is wrong', [20, 'b'], 'bad quoting', [30, 'c'], [15, 'd']), [0, 2, 3, 1], WRONG, 'line 5: bad quoting'],
    ['repeated names', rowsOf([1, 'a'], [2, 'b'], [3, 'a'], [4, 'a'], [5, 'd']), [0, 1, 2], `line 4: ${ALREADY_A}`, `line 5: ${ALREADY_A}`],
    ['repeated numbers', rowsOf([7, 'a'], [9, 'b'], [7, 'c'], [8, 'd'], [7, 'e']), [0, 2, 1], `line 4: ${NUMBER_7}`, `line 6: ${NUMBER_7}`],
    ['bad and repeated rows', rowsOf([7, 'a'], 'name "c" is wrong', [7, 'b'], [3, 'a']), [0], WRONG, `line 4: ${NUMBER_7}`, `line 5: ${ALREADY_A}`],
    ['a name and a number that repeat', rowsOf([1, 'a'], [2, 'b'], [2, 'a']), [0, 1], `line 4: ${ALREADY_A}`],
    ['a name of a skipped row', rowsOf([7, 'a'], [7, 'c'], [9, 'c']), [0, 1], `line 3: ${NUMBER_7}`],
    ['a number of a skipped row', rowsOf([1, 'a'], [2, 'a'], [2, 'b']), [0, 1], `line 3: ${ALREADY_A}`],
    ['long names', rowsOf([1, LONG], [2, LONG], [4, LONG]), [0], `line 3: ${ALREADY_LONG}`, `line 4: ${ALREADY_LONG}`],
  ]; // prettier-ignore
  for (const [what, rows, ordinals, ...warnings] of lists) {
    it(`${warnings.length === 0 ? 'accepts' : 'rejects or skips'} ${what}`, async () => {
      const dataset = await check(rows, warnings.length);
      const total = ordinals.length;
      expect(dataset).to.deep.include({ total, urlHost: 'registry.example', warnings });
      expect(dataset.kept.map(({ no }) => dataset.ordinalOf(no))).to.deep.equal(ordinals);
      for (const [max, reason] of warnings.entries()) {
        const message = reason + (max === 0 ? '' : tooMany(max));
        await rejects(check(rows, max), { name: 'DatasetError', message });
      }
    });
  }

  it('logs at most 300 characters of a reason', async () => {
    const { warnings } = await check(rowsOf([1, 'a'], 'x'.repeat(5000)), 1);
    expect(warnings).to.deep.equal([`line 3: ${'x'.repeat(299)}…`]);
  });

  it('rejects a list without a valid row', async () => {
    for (const rows of [[], rowsOf('bad quoting', 'name is empty')])
      await rejects(check(rows, 2), { name: 'DatasetError', message: 'the list has no packages' });
  });

  it('uses the host of the first valid package', async () => {
    const first = { at: 3, no: 1, name: 'a', url: 'https://Packages.Example:8443/a' };
    const rows = [...rowsOf('wrong'), first, ...rowsOf([2, 'b'])];
    expect((await check(rows, 1)).urlHost).to.equal('packages.example:8443');
  });

  /** Packages of which two each have the same name. */
  const pairs = (count: number) =>
    Array.from({ length: count }, (_, i) => {
      const url = 'https://registry.example/';
      return { at: i + 2, no: i + 1, name: `package-${i - (i % 2)}`, url };
    });

  it('names the first line that is wrong if 100,000 names repeat', async () => {
    await rejects(check(pairs(200_000), 2), {
      name: 'DatasetError',
      message: `line 7: name "package-4" is already on line 6${tooMany(2)}`,
    });
  });

  it('names a line that is wrong if even more names repeat', async () => {
    const message = /^line \d+: name "package-\d+" is already on line \d+$/;
    await rejects(check(pairs(220_000)), { name: 'DatasetError', message });
  });

  it('passes on a read error', async () => {
    const failing = async function* () {
      yield* batchesOf(rowsOf([1, 'a']));
      throw new Error('the disk is gone');
    };
    await rejects(check(failing, 9), { message: 'the disk is gone' });
  });

  describe('on 100,000 rows', () => {
    const COUNT = 100_000;
    const random = seededRandom(5);
    const numbers = Array.from({ length: COUNT }, (_, i) => 3 * i + integer(random, 1, 3));
    const packages = numbers.map((no, i): Short => [no, `package-${i}`]);
    for (let i = COUNT - 1; i > 0; i--) {
      const j = integer(random, 0, i);
      [packages[i], packages[j]] = [packages[j] as Short, packages[i] as Short];
    }

    it('finds the ordinal of every number, in any order', async () => {
      const dataset = await check(rowsOf(...packages));
      expect(dataset).to.deep.include({ total: COUNT, warnings: [] });
      expect(numbers.filter((no, ordinal) => dataset.ordinalOf(no) !== ordinal)).to.deep.equal([]);
    });

    it('keeps every name and number once, with dense ordinals, if many rows are bad or repeated', async () => {
      const rows = rowsOf(
        ...packages.map(([no, name]): Short | string => {
          const chance = random();
          if (chance < 0.01) return 'wrong';
          const [otherNo, otherName] = pick(random, packages);
          if (chance < 0.03) return [otherNo, name];
          return [no, chance < 0.05 ? otherName : name];
        }),
      );
      const dataset = await check(rows, COUNT);
      const { total, warnings, kept } = dataset;
      const repeated = warnings.filter((warning) => warning.includes('is already on'));
      expect(repeated.length).to.be.greaterThan(1000);
      expect(total).to.equal(kept.length);
      expect(total + warnings.length).to.equal(COUNT);
      expect(new Set(kept.map(({ name }) => name)).size).to.equal(total);
      const inOrder = kept.map(({ no }) => no).sort((a, b) => a - b);
      expect(inOrder.filter((no, ordinal) => dataset.ordinalOf(no) !== ordinal)).to.deep.equal([]);
    });
  });
});
