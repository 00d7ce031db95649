import { rejects } from 'node:assert/strict';
import { Readable } from 'node:stream';
import { expect } from 'chai';
import { pino } from 'pino';
import type { PackageEntry } from '../../../src/search/package-document.js';
import { createLogger } from '../../../src/log.js';
import { validateDataset, type ValidatedDataset } from '../../../src/rebuild/validate.js';
import type { Row } from '../../../src/rebuild/rows.js';
import { integer, pick, seededRandom } from '../../../fixtures/random.js';

/** The number and name of a package. */
type Short = [no: number, name: string];

function entry(no: number, name: string): PackageEntry {
  return { no, name, version: 'latest', url: `https://registry.example/${no}` };
}

/** Rows from line 2 on: packages, or reasons why a row is bad. */
function rowsOf(...rows: (Short | string)[]): Row[] {
  return rows.map((row, i) =>
    typeof row === 'string' ? { line: i + 2, reason: row } : { line: i + 2, entry: entry(...row) },
  );
}

interface Outcome extends ValidatedDataset {
  warnings: { line: number; reason: string }[];
  /** Arguments of `onRows`. */
  counts: number[];
}

/** Validates rows in batches of `batchSize`, with a real logger whose warnings are recorded. */
async function check(rows: Row[], maxBadRows = 0, batchSize = 3): Promise<Outcome> {
  const warnings: Outcome['warnings'] = [];
  const log = pino(
    { level: 'warn', base: null },
    {
      write: (json: string) => {
        const { line, reason } = JSON.parse(json) as Outcome['warnings'][number];
        warnings.push({ line, reason });
      },
    },
  );
  const counts: number[] = [];
  const batches = function* () {
    for (let i = 0; i < rows.length; i += batchSize) yield rows.slice(i, i + batchSize);
  };
  const read = () => Readable.from(batches());
  const checked = await validateDataset(read, { maxBadRows, log, onRows: (count) => counts.push(count) });
  return { ...checked, warnings, counts };
}

async function expectRefused(rows: Row[], message: string, maxBadRows = 0): Promise<void> {
  await rejects(check(rows, maxBadRows), { name: 'DatasetError', message });
}

/** The numbers of the remaining packages, with their ordinals. */
function ordinals(checked: ValidatedDataset, rows: Row[]): [no: number, ordinal: number][] {
  return rows
    .flatMap((row) => ('entry' in row && !checked.duplicateLines.has(row.line) ? [row.entry.no] : []))
    .map((no) => [no, checked.ordinalOf(no)]);
}

describe('validateDataset', () => {
  it('counts the packages and assigns ordinals', async () => {
    const rows = rowsOf([1, 'a'], [2, 'b'], [3, 'c'], [4, 'd']);
    const checked = await check(rows);
    expect(checked).to.deep.include({
      total: 4,
      duplicateLines: new Set(),
      urlHost: 'registry.example',
      warnings: [],
    });
    expect(ordinals(checked, rows)).to.deep.equal([
      [1, 0],
      [2, 1],
      [3, 2],
      [4, 3],
    ]);
  });

  it('assigns dense ordinals to numbers with gaps, in any order', async () => {
    const rows = rowsOf([900, 'a'], [7, 'b'], [Number.MAX_SAFE_INTEGER, 'c'], [1, 'd'], [8, 'e'], [901, 'f']);
    const checked = await check(rows);
    expect(ordinals(checked, rows)).to.deep.equal([
      [900, 3],
      [7, 1],
      [Number.MAX_SAFE_INTEGER, 5],
      [1, 0],
      [8, 2],
      [901, 4],
    ]);
  });

  it('returns no ordinal for an unknown number', async () => {
    const checked = await check(rowsOf([5, 'a'], [10, 'b']));
    for (const no of [1, 7, 11]) expect(checked.ordinalOf(no)).to.equal(-1);
  });

  it('reports the number of rows read after each batch', async () => {
    const rows = rowsOf([1, 'a'], [2, 'b'], 'wrong', [4, 'd'], [5, 'e'], [6, 'f'], [7, 'g']);
    expect((await check(rows, 1)).counts).to.deep.equal([3, 6, 7]);
  });

  it('uses the host of the first valid package', async () => {
    const rows = rowsOf('wrong', [1, 'a'], [2, 'b']);
    rows[1] = { line: 3, entry: { ...entry(1, 'a'), url: 'https://Packages.Example:8443/a' } };
    expect((await check(rows, 1)).urlHost).to.equal('packages.example:8443');
  });

  it('distinguishes names by case, white space and normalisation', async () => {
    const names = ['a', 'A', 'a ', ' a', 'é', 'e\u0301', 'a\0', '__proto__', 'constructor'];
    const { total } = await check(rowsOf(...names.map((name, i): Short => [i + 1, name])));
    expect(total).to.equal(names.length);
  });

  describe('if no bad rows are allowed', () => {
    it('rejects a bad row', async () => {
      await expectRefused(rowsOf([1, 'a'], 'bad quoting', [3, 'c'], 'name is empty'), 'line 3: bad quoting');
    });

    it('rejects a repeated name, naming both lines', async () => {
      await expectRefused(
        rowsOf([1, 'a'], [2, 'b'], [3, 'c'], [4, 'd'], [5, 'b']),
        'line 6: name "b" is already on line 3',
      );
    });

    it('rejects a repeated number, naming both lines', async () => {
      await expectRefused(
        rowsOf([4, 'a'], [2, 'b'], [3, 'c'], [1, 'd'], [2, 'e']),
        'line 6: package_no 2 is already on line 3',
      );
      await expectRefused(rowsOf([1, 'a'], [1, 'b']), 'line 3: package_no 1 is already on line 2');
    });

    it('names the first repetition, in the order of the lines', async () => {
      await expectRefused(
        rowsOf([1, 'a'], [2, 'b'], [2, 'c'], [3, 'a']),
        'line 4: package_no 2 is already on line 3',
      );
      await expectRefused(
        rowsOf([1, 'a'], [2, 'b'], [3, 'a'], [2, 'c']),
        'line 4: name "a" is already on line 2',
      );
    });

    it('rejects the same row twice, by its name', async () => {
      await expectRefused(rowsOf([1, 'a\n"'], [1, 'a\n"']), 'line 3: name "a\\n\\"" is already on line 2');
    });

    it('names the first line of a record that spans several lines', async () => {
      const rows: Row[] = [
        { line: 2, entry: entry(1, 'a\nb') },
        { line: 40, entry: entry(2, 'c') },
        { line: 99, entry: entry(3, 'a\nb') },
      ];
      await expectRefused(rows, 'line 99: name "a\\nb" is already on line 2');
    });
  });

  describe('if some bad rows are allowed', () => {
    it('skips and logs them, and assigns dense ordinals', async () => {
      const rows = rowsOf([10, 'a'], 'bad quoting', [20, 'b'], 'name is empty', [30, 'c'], [15, 'd']);
      const checked = await check(rows, 2);
      expect(checked).to.deep.include({ total: 4, duplicateLines: new Set() });
      expect(checked.warnings).to.deep.equal([
        { line: 3, reason: 'bad quoting' },
        { line: 5, reason: 'name is empty' },
      ]);
      expect(ordinals(checked, rows)).to.deep.equal([
        [10, 0],
        [20, 2],
        [30, 3],
        [15, 1],
      ]);
    });

    it('skips all but the first of repeated rows', async () => {
      const rows = rowsOf([1, 'a'], [2, 'b'], [3, 'a'], [2, 'c'], [4, 'a'], [5, 'd'], [2, 'e']);
      const checked = await check(rows, 4);
      expect(checked).to.deep.include({ total: 3, duplicateLines: new Set([4, 5, 6, 8]) });
      expect(checked.warnings).to.deep.equal([
        { line: 4, reason: 'name "a" is already on line 2' },
        { line: 5, reason: 'package_no 2 is already on line 3' },
        { line: 6, reason: 'name "a" is already on line 2' },
        { line: 8, reason: 'package_no 2 is already on line 3' },
      ]);
      expect(ordinals(checked, rows)).to.deep.equal([
        [1, 0],
        [2, 1],
        [5, 2],
      ]);
      for (const no of [3, 4]) expect(checked.ordinalOf(no)).to.equal(-1);
    });

    it('counts a row that repeats both a name and a number once', async () => {
      const checked = await check(rowsOf([1, 'a'], [2, 'b'], [2, 'a']), 1);
      expect(checked).to.deep.include({ total: 2, duplicateLines: new Set([4]) });
      expect(checked.warnings).to.have.length(1);
    });

    it('rejects one bad row too many, and reports how many were skipped', async () => {
      await expectRefused(
        rowsOf('bad quoting', 'name is empty', [1, 'a'], 'not valid UTF-8'),
        'line 5: not valid UTF-8 (after 2 invalid rows, the maximum that may be skipped)',
        2,
      );
    });

    it('counts bad rows and repetitions together', async () => {
      const rows = rowsOf('bad quoting', [1, 'a'], [2, 'a'], [3, 'a']);
      expect(await check(rows, 3)).to.include({ total: 1 });
      await expectRefused(
        rows,
        'line 5: name "a" is already on line 3 (after 2 invalid rows, the maximum that may be skipped)',
        2,
      );
    });

    it('does not compare with rows that are skipped as repetitions', async () => {
      const byNumber = await check(rowsOf([1, 'a'], [2, 'b'], [1, 'c'], [3, 'c']), 1);
      expect(byNumber).to.deep.include({ total: 3, duplicateLines: new Set([4]) });
      const byName = await check(rowsOf([1, 'a'], [2, 'a'], [2, 'b']), 1);
      expect(byName).to.deep.include({ total: 2, duplicateLines: new Set([3]) });
    });

    it('does not compare with bad rows', async () => {
      const checked = await check(rowsOf('name "a" is wrong', [1, 'a'], [2, 'b']), 1);
      expect(checked).to.deep.include({ total: 2, duplicateLines: new Set() });
    });
  });

  describe('with long values', () => {
    const name = (suffix: string) => `${'\0'.repeat(500)}${suffix}`;
    const quoted = `"${'\\u0000'.repeat(10)}"…`;

    it('limits reasons to 300 characters, in the error and in the log', async () => {
      const rows = rowsOf([1, name('a')], [2, name('a')], 'x'.repeat(5000), [4, name('a')]);
      const checked = await check(rows, 3);
      expect(checked.warnings).to.deep.equal([
        { line: 4, reason: `${'x'.repeat(299)}…` },
        { line: 3, reason: `name ${quoted} is already on line 2` },
        { line: 5, reason: `name ${quoted} is already on line 2` },
      ]);
      await expectRefused(
        rows,
        `line 5: name ${quoted} is already on line 2 (after 2 invalid rows, the maximum that may be skipped)`,
        2,
      );
      await expectRefused(rows, `line 4: ${'x'.repeat(291)}…`);
    });
  });

  it('rejects a dataset without packages', async () => {
    await expectRefused([], 'the dataset has a header and no packages');
    await expectRefused(
      rowsOf('bad quoting', 'name is empty'),
      'the dataset has a header and no packages',
      2,
    );
  });

  it('stops reading if more names repeat than may be skipped', async () => {
    let read = 0;
    const batches = function* () {
      for (let i = 0; i < 1_000_000; i += 100, read += 100) {
        yield Array.from({ length: 100 }, (_, k) => ({
          line: i + k + 2,
          entry: entry(i + k + 1, `package-${(i + k) >> 1}`),
        }));
      }
    };
    const options = { maxBadRows: 10, log: createLogger('silent', false), onRows: () => undefined };
    await rejects(
      validateDataset(() => Readable.from(batches()), options),
      {
        name: 'DatasetError',
        message:
          'line 23: name "package-10" is already on line 22 (after 10 invalid rows, the maximum that may be skipped)',
      },
    );
    expect(read).to.be.at.most(1000);
  });

  it('names the first repeated number of many', async () => {
    const numbers = Array.from({ length: 50_000 }, (_, i) => i + 1);
    const repeated = [...numbers, ...numbers.toReversed()];
    await expectRefused(
      rowsOf(...repeated.map((no, i): Short => [no, `package-${i}`])),
      'line 50002: package_no 50000 is already on line 50001',
    );
  });

  it('passes on a read error', async () => {
    const failing = () =>
      Readable.from(
        (function* () {
          yield rowsOf([1, 'a']);
          throw new Error('the disk is gone');
        })(),
      );
    const options = { maxBadRows: 9, log: createLogger('silent', false), onRows: () => undefined };
    await rejects(validateDataset(failing, options), { message: 'the disk is gone' });
  });

  describe('on 100,000 rows', () => {
    const COUNT = 100_000;
    const random = seededRandom(5);
    const numbers = Array.from({ length: COUNT }, (_, i) => 3 * i + integer(random, 1, 3));
    const shuffled = [...numbers];
    for (let i = COUNT - 1; i > 0; i--) {
      const j = integer(random, 0, i);
      [shuffled[i], shuffled[j]] = [shuffled[j] as number, shuffled[i] as number];
    }

    it('finds the ordinal of every number, in any order', async () => {
      const rows = rowsOf(...shuffled.map((no, i): Short => [no, `package-${i}`]));
      const checked = await check(rows, 0, 1000);
      expect(checked).to.deep.include({ total: COUNT, duplicateLines: new Set(), warnings: [] });
      expect(checked.counts.at(-1)).to.equal(COUNT);
      expect(numbers.filter((no, ordinal) => checked.ordinalOf(no) !== ordinal)).to.deep.equal([]);
    });

    it('rejects a repetition of the first line on the last', async () => {
      const packages = shuffled.map((no, i): Short => [no, `package-${i}`]);
      const last = 2 * COUNT * 3;
      await expectRefused(
        rowsOf(...packages, [last, 'package-0']),
        `line ${COUNT + 2}: name "package-0" is already on line 2`,
      );
      await expectRefused(
        rowsOf(...packages, [shuffled[0] as number, 'another']),
        `line ${COUNT + 2}: package_no ${shuffled[0]} is already on line 2`,
      );
    });

    it('keeps every name and number once, with dense ordinals, if many rows are bad or repeated', async () => {
      const rows = rowsOf(
        ...shuffled.map((no, i): Short | string => {
          const chance = random();
          if (chance < 0.01) return 'wrong';
          if (chance < 0.03) return [pick(random, shuffled), `package-${i}`];
          if (chance < 0.05) return [no, `package-${integer(random, 0, COUNT)}`];
          return [no, `package-${i}`];
        }),
      );
      const checked = await check(rows, COUNT, 1000);
      const kept = rows.flatMap((row) =>
        'entry' in row && !checked.duplicateLines.has(row.line) ? [row.entry] : [],
      );
      expect(checked.duplicateLines.size).to.be.greaterThan(1000);
      expect(checked.total).to.equal(kept.length);
      expect(checked.total + checked.warnings.length).to.equal(COUNT);
      expect(new Set(kept.map(({ name }) => name)).size).to.equal(kept.length);
      const inOrder = kept.map(({ no }) => no).sort((a, b) => a - b);
      expect(inOrder.filter((no, ordinal) => checked.ordinalOf(no) !== ordinal)).to.deep.equal([]);
    });
  });
});
